"""Options and arguments of several commands. Each option is also a variable: `--rev` is RECONCILER_REV."""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.journal import SharedOrdersTable


def resource_and_store(words: Sequence[str]) -> tuple[str, str]:
    """Return KIND/NAME and the store (empty: none) of `KIND/NAME [STORE]`. Raises UsageError: other words."""
    resource = resource_in(words)
    rest = words[1 if "/" in words[0] else 2 :]
    if len(rest) > 1:
        raise click.UsageError(f"one KIND/NAME and one STORE are taken; {' '.join(rest[1:])} is too much")
    return resource, rest[0] if rest else ""


def resource_in(words: Sequence[str]) -> str:
    """Return KIND/NAME from one word or two. Raises UsageError: no resource is named, or only a kind."""
    if not words:
        raise click.UsageError("name a resource: KIND/NAME, for example deploy/web")
    if "/" in words[0]:
        return words[0]
    if len(words) == 1:
        raise click.UsageError(f"{words[0]} is a kind, or a name without one; write KIND/NAME, for example deploy/web")
    return f"{words[0]}/{words[1]}"


def person(environ: Mapping[str, str] = os.environ) -> str:
    """Return user and host of the person, and the user that sudo runs as: `li@host as root`."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "unknown"
    behind, host = environ.get("SUDO_USER", ""), socket.gethostname()
    # A colleague cannot ask root.
    return f"{behind}@{host} as {user}" if behind not in ("", user) else f"{user}@{host}"


@contextmanager
def orders_of(path: Path) -> Iterator[SharedOrdersTable]:
    """Open the orders of a journal to add some. Raises ConfigurationError: its process stands by."""
    from reconciler.journal import SharedOrdersTable, holder

    with SharedOrdersTable(path) as book:
        if book.led_by and holder(path):
            raise ConfigurationError(
                f"{path}: the process of this journal stands by, led by {book.led_by}; give the order "
                "to the process that leads: it goes from one leader to the next"
            )
        yield book


Command = TypeVar("Command", bound=Callable[..., Any])

SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
"""Of every command: click remembers the help option of the first context, so that inheriting it is not enough."""


def option(*names: str, **attributes: Any) -> Callable[[Command], Command]:
    """A click option that can be given by environment as well."""
    long = next(name for name in names if name.startswith("--"))
    attributes.setdefault("envvar", "RECONCILER_" + long.split("/")[0].removeprefix("--").replace("-", "_").upper())
    if long in _COMPLETED:
        attributes.setdefault("shell_complete", completer(_COMPLETED[long]))
    return click.option(*names, **attributes)


def file_option(*names: str, **attributes: Any) -> Callable[[Command], Command]:
    """An option that takes the path of a file, which need not be there."""
    return option(*names, type=click.Path(path_type=Path, dir_okay=False, readable=False), default=None, **attributes)


_COMPLETED: Final[Mapping[str, str]] = {
    "--namespace": "namespaces",
    "--cluster": "clusters",
    "--context": "contexts",
    **dict.fromkeys(("--rev", "--base", "--head"), "revisions"),
}


def completer(name: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a completion callback: the function of `completing` with this name, imported when called."""

    def complete(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        completing = importlib.import_module("reconciler.cli.completion")
        words: list[str] = getattr(completing, name)(ctx, parameter, begun)
        return words

    return complete


def grouped(parameter: str, make: Callable[..., Any], *added: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add options that reach the command as one parameter: what `make` returns for their values, named as its own."""
    code = getattr(make, "__code__", None)
    names = getattr(make, "_fields", None) or code.co_varnames[: code.co_argcount]  # type: ignore[union-attr]

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            group = make(**{name: values.pop(name) for name in names if name in values})
            return function(**values, **{parameter: group})

        for one in reversed(added):
            command = one(command)
        return command

    return add


def resource_words(metavar: str) -> Callable[[Command], Command]:
    """Add the argument `KIND/NAME`, or `KIND NAME` as kubectl takes it, and the words after it."""
    return click.argument("words", nargs=-1, metavar=metavar, shell_complete=completer("resources"))


def optional_store(function: Command, default: str | None = None) -> Command:
    """STORE, as an argument or as `--store`; it may be left out."""

    @functools.wraps(function)
    def chosen(*, store: str | None, named_store: str | None, **values: Any) -> Any:
        if store is not None and is_typed("named_store") and named_store != store:
            raise click.UsageError(f"STORE is given twice: {store} and --store {named_store}")
        return function(store=store or named_store or default, **values)

    named = option("--store", "named_store", default=None, metavar="STORE", help="The store, as the argument names it.")
    return click.argument("store", required=False)(named(chosen))  # type: ignore[return-value]


def store_argument(function: Command) -> Command:
    """STORE, as an argument or as `--store`; the current directory by default."""
    return optional_store(function, ".")


def is_typed(name: str) -> bool:
    """Return whether an option was given on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


named_store = option("--store", default=".", show_default=True, help="The fleet store.")
"""STORE where the command takes other arguments."""
store_of_fleet = option(
    "--store", default=None, help="The store whose fleet is meant. Default: the one that the current folder is in."
)
suspension_scope = click.argument("scope", nargs=-1, shell_complete=completer("resources"))
"""`fleet`, `cluster NAME`, or KIND/NAME."""
namespace_of_resource = option(
    "-n", "--namespace", default=None, help="Namespace of the resource, when its name is not enough."
)
rev = option("--rev", default=None, metavar="REV", help="Branch, tag or commit to read instead of the files.")
as_directory = option("--dir", "as_directory", is_flag=True, help="Read the files as they lie, Git or not.")
kubeconfig = option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    default=None,
    help="File with a context per cluster, or folder with a file per cluster. Default: as kubectl.",
)


class StoreChoice(NamedTuple):
    """STORE, and how it is read: `read_fleet` takes them in this order."""

    store: str
    rev: str | None
    as_directory: bool


store_choice = grouped("chosen", StoreChoice, store_argument, rev, as_directory)


ProfileOptions = tuple[str, Path]
"""The place of live ClusterProfiles, and the file of credential providers."""


def _profiles_of(access_from: str | None, provider_file: Path | None) -> ProfileOptions | None:
    if (access_from is None) != (provider_file is None):
        raise click.UsageError("--access-from and --clusterprofile-provider-file are given together")
    return (access_from, provider_file) if access_from and provider_file else None


live_profiles = grouped(
    "profiles",
    _profiles_of,
    option("--access-from", default=None, metavar="CONTEXT[/NAMESPACE]",
           help="Reach clusters that follow an inventory as its live ClusterProfiles say."),
    file_option("--clusterprofile-provider-file", "provider_file",
                help="How credentials are got for the access providers of profiles (JSON, as of KEP-5339)."),
)  # fmt: skip
journal = file_option(
    "--journal",
    help="Journal file. Default: $STATE_DIRECTORY/journal.db, else FLEET/journal.db in the user's state folder.",
)


class Reach(NamedTuple):
    """The ways to the clusters, and the journal that is named; None: as kubectl, and that of the fleet."""

    kubeconfig: Path | None = None
    profiles: ProfileOptions | None = None
    journal: Path | None = None


reach = grouped("reach", Reach, kubeconfig, live_profiles, journal)
observations = option(
    "--observations",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="What is known of the clusters (as `observe` writes it), instead of asking them.",
)
cluster_filter = option("--cluster", "clusters", multiple=True, help="Only these clusters (repeatable).")

PATIENT_S: Final = 120.0
"""A person's command waits this long for sops, since it makes exactly the plan that it shows."""

_BINARY_OPTIONS: Final = (
    file_option("--sops-binary", metavar="PATH",
                   help="Open files for other keys than age with this sops, by absolute path. Default: no program is "
                        "started."),
    option("--sops-binary-sha256", default="", metavar="DIGEST", help="What --sops-binary must be."),
)  # fmt: skip
_OPTIONS: Final = (
    file_option("--sops-age-key-file",
                   help="File with age identities that open what sops encrypted. Default: the credential sops-age of "
                        "systemd."),
    *_BINARY_OPTIONS,
)  # fmt: skip


class KeysNamed(NamedTuple):
    """The options, as they were given. `wait_s`: for so long a command waits for the sops that was named."""

    sops_age_key_file: Path | None = None
    sops_binary: Path | None = None
    sops_binary_sha256: str = ""
    wait_s: float = PATIENT_S


keys_options = grouped("keys", KeysNamed, *_OPTIONS)
sops_binary_options = grouped("keys", KeysNamed, *_BINARY_OPTIONS)


_FORGES: Final = ("github", "gitlab", "gitea", "forgejo")

_TELLING_OPTIONS: Final = (
    option("--webhook", "webhooks", multiple=True, metavar="URL",
                   help="Tell this address each event of history, as CloudEvents. May be repeated."),
    file_option("--webhook-file", metavar="FILE",
                   help="Tell the addresses in this file too, one a line. Default: credential webhook."),
    file_option("--webhook-secret-file", metavar="FILE",
                   help="Sign webhook requests with this secret. Default: credential webhook-secret."),
    option("--webhook-events", default="", metavar="KINDS",
                   help="Only events of these kinds, with commas in between. Default: all."),
    option("--allow-plain-http", is_flag=True, help="Tell others over http:// as well, beyond this machine."),
    option("--forge-status", type=click.Choice(_FORGES), default=None, metavar="FORGE",
                   help="Set the status of the commit in force there: github, gitlab, gitea, forgejo."),
    option("--forge-repository", default="", metavar="OWNER/NAME",
                   help="The repository there. Default: that of STORE, if it is a URL."),
    option("--forge-api", default="", metavar="URL",
                   help="The address of its API. Default: at the host of STORE."),
    file_option("--forge-token-file",
                   help="The token for it is in this file. Default: credential forge-token."),
    option("--page-url", default="", metavar="URL",
                   help="Where people see the status page; the forge links it."),
)  # fmt: skip


class NotifyOptions(NamedTuple):
    """The options, as they were given."""

    webhooks: tuple[str, ...]
    webhook_file: Path | None
    webhook_secret_file: Path | None
    webhook_events: str
    allow_plain_http: bool
    forge_status: str | None
    forge_repository: str
    forge_api: str
    forge_token_file: Path | None
    page_url: str


telling_options = grouped("notify", NotifyOptions, *_TELLING_OPTIONS)

_SHORT_WITH_EQUALS: Final = re.compile(r"-[A-Za-z]=.", re.DOTALL)


def without_equals(args: Sequence[str]) -> list[str]:
    """Return arguments with `-n=shop` as `-nshop`, as kubectl reads it; click would take `=shop` for the value."""
    ends = args.index("--") if "--" in args else len(args)
    return [
        word[:2] + word[3:] if at < ends and _SHORT_WITH_EQUALS.match(word) else word for at, word in enumerate(args)
    ]


def output(*choices: str, default: str) -> Callable[[Command], Command]:
    """Add `-o`: the output format of stdout."""
    return option(
        "-o", "--output", type=click.Choice(choices), default=default, show_default=True, help="Output format."
    )


def time(name: str, *, words: str) -> Callable[[Command], Command]:
    """An option that takes a time, which reaches the command in UTC."""
    return option(name, default=None, metavar="TIME", help=words, callback=_instant)


def _instant(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from reconciler.clock import instant

    return instant(value)


def option_keys(command: click.Command) -> dict[str, str]:
    """Key of the `--config` file (`journal`, `log-format`) to the parameter that it sets; groups: of their commands."""
    keys: dict[str, str] = {}
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        keys |= option_keys(inner)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            long = next(name for name in parameter.opts if name.startswith("--"))
            keys[long.removeprefix("--")] = parameter.name
    return keys


def defaults_for(command: click.Command, config: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a `--config` file as click wants them for one command."""
    if isinstance(command, click.Group):
        return {name: defaults_for(inner, config) for name, inner in command.commands.items()}
    return {parameter: config[key] for key, parameter in option_keys(command).items() if key in config}


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Return the `--config` file (YAML) by option name, `_` as `-`. Raises ConfigurationError: an unknown name."""
    import difflib

    from reconciler.api.problem import Severity
    from reconciler.secret_files import read_secret_file
    from reconciler.yaml import read_yaml

    read = read_yaml(str(path), read_secret_file(path, "--config", is_private=False))
    faults = [problem for problem in read.problems if problem.severity is Severity.ERROR]
    if any(fault.code == "not-an-object" for fault in faults) or len(read.documents) > 1:
        raise ConfigurationError(f"{path}: must be a mapping of option names to values")
    if faults:
        lines = "; ".join(f"line {fault.source.line}: {fault.message}" for fault in faults)
        raise ConfigurationError(f"{path}: cannot be read as YAML: {lines}")
    if not read.documents:
        return {}
    config = {key.replace("_", "-"): value for key, value in read.documents[0].body.items()}
    for key in sorted(config.keys() - set(known)):
        close = difflib.get_close_matches(key, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigurationError(f"{path}: no command has an option {key}{hint}")
    return config
