"""The entry point: commands are imported when called. Unknown ones get similar commands, or kubectl's counterpart."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import keyword
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from reconciler import __version__
from reconciler.cli.options import SETTINGS, defaults_for, option_keys, read_config, without_equals
from reconciler.errors import ReconcilerError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a write that name no file: to stdout, or to the file of an option."""

COMMANDS = {
    "init": "Write a new fleet store, or the missing parts of one.",
    "demo": "Show what this does, on embedded clusters.",
    "import": "Write live objects as templates, with a policy that adopts them.",
    "inventory": "Keep documents of clusters equal to an inventory of ClusterProfiles.",
    "hydrate": "Render charts and kustomizations of the store into files that are committed.",
    "promote": "Carry images, revisions and values of one folder to another, as a commit.",
    "validate": "Check a store without any cluster.",
    "render": "Print the objects of every cluster as the store wants them.",
    "diff": "Show what would change: against the clusters, or between two revisions.",
    "comment": "Put a plan into the comment of a pull request.",
    "apply": "Make the clusters equal to the store.",
    "run": "Follow the store and keep the clusters equal to it, as a service.",
    "now": "Ask the running service to look at everything now.",
    "get": "List objects over all clusters.",
    "explain": "Say why a resource lives where it does.",
    "status": "Say how far the clusters are from the store.",
    "history": "Say who changed what, and when.",
    "suspend": "Stop writing: everywhere, to one cluster, or to one resource.",
    "resume": "End a suspension.",
    "approve": "Let a revision leave a stage of a rollout, as a commit.",
    "evict": "Take a resource away from a cluster.",
    "clusters": "List the member clusters.",
    "doctor": "Check access to every cluster.",
    "observe": "Write down what is known of the clusters.",
    "schema": "Print JSON Schemas of the policy kinds for editors.",
    "journal": "Verify, rebuild or export the journal.",
    "completion": "Print the completion script for a shell.",
}
"""Command to its one-line help. A command `x` is `reconciler.cli.x:command`; a keyword of Python has a `_` after it."""

ALIASES = {"why": "explain"}


class LazyGroup(click.Group):
    """Knows its commands by name and imports one when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"reconciler.cli.{name}{'_' if keyword.iskeyword(name) else ''}")
        command: click.Command = module.command
        command.name = name
        if ctx.obj is not None and ctx.default_map is not None:
            ctx.default_map[cmd_name] = defaults_for(command, ctx.obj)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; for an unknown one, raise a usage error with similar commands."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise click.UsageError(unknown_command(name, [*COMMANDS, *ALIASES]), ctx)
        resolved = super().resolve_command(ctx, args)
        if not ctx.resilient_parsing and (command := resolved[1]) is not None:
            if isinstance(command, click.Group) and resolved[2]:
                command = command.commands.get(resolved[2][0], command)
            _warn_of_misspelt_variables(command)
            ctx.meta[_COMMAND], ctx.meta[_WORDS] = command, args
        return resolved

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; name counterparts of other tools' options, and variables that a fault quotes."""
        try:
            return super().invoke(ctx)
        except (click.UsageError, ReconcilerError) as error:
            command = ctx.meta.get(_COMMAND)
            if command is not None and (variables := _variables_quoted(command, ctx.meta[_WORDS], str(error))):
                from reconciler.cli.printing import remark

                remark(f"note: variables give options: {', '.join(variables)}")
            if isinstance(error, click.UsageError) and (better := _with_next_step(error, command)) is not None:
                raise better from error
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands that begin so, without importing any; options are click's."""
        from click.shell_completion import CompletionItem

        names = {**COMMANDS, **{alias: COMMANDS[name] for alias, name in ALIASES.items()}}
        items = [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)]
        return items if not incomplete.startswith("-") else super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_COMMAND: Final = "reconciler.command"
_WORDS: Final = "reconciler.words"


def _variables_quoted(command: click.Command, args: list[str], message: str) -> list[str]:
    """Return the variables whose option or value a message has in it, as `RECONCILER_REV (--rev)`."""
    typed = {word.partition("=")[0] for word in args}
    return [
        f"{option.envvar} ({name})"
        for option in command.params
        if isinstance(option.envvar, str) and not typed & {*option.opts} and (value := os.environ.get(option.envvar))
        for name in [max(option.opts, key=len)]
        if any(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", message) for word in (name, *value.split()))
    ]


_ARGUMENTS: Final[Mapping[str, str]] = {
    "approve": "For example: approve production. 'reconciler status' lists the stages that wait.",
    "comment": "For example: comment plan.md, which 'reconciler diff -o markdown > plan.md' wrote.",
    "get": "For example: get deployments -A, or get cm,secrets -n demo.",
}
_EXAMPLES: Final[Mapping[str, str]] = {
    "--base": "main", "--cluster": "m1", "--context": "m1", "--journal": "state/journal.db",
    "--kubeconfig": "~/.kube/config",
    "--name": "shop", "--namespace": "demo", "--output": "json", "--reason": "maintenance", "--rev": "main",
    "--selector": "app=web", "--since": "2h", "--store": ".", "--to": "production",
}  # fmt: skip


def _with_next_step(error: click.UsageError, command: click.Command | None) -> click.UsageError | None:
    """Return an error with an example, or the counterpart of what was typed; None: it has its next step."""
    match error:
        case click.BadOptionUsage() if command is not None:
            return click.BadOptionUsage(error.option_name, _with_metavar(error, command), error.ctx)
        case click.MissingParameter(param=click.Option() as option):
            return click.MissingParameter(error.message or option.help, error.ctx, option)
        case click.MissingParameter(param=click.Argument() as argument) if command is not None:
            example = _ARGUMENTS.get(command.name or "", "")
            return click.MissingParameter(error.message or example, error.ctx, argument) if example else None
        case click.NoSuchOption() if hint := _hint_of(error.option_name):
            return click.NoSuchOption(error.option_name, f"{error.message} {hint}", ctx=error.ctx)
        case click.NoSuchCommand(ctx=click.Context(command=click.Group() as group)):
            known = ", ".join(sorted(group.commands))
            return click.UsageError(f"{group.name} has no command {error.command_name}; it has {known}", error.ctx)
        case click.BadParameter(
            param=click.Option(type=click.types.FloatParamType() | click.types.IntParamType()) as option
        ):
            number = option.default if isinstance(option.default, float | int) else 60
            message = f"{error.message.rstrip('.')}; for example {option.opts[0]} {number:g}"
            return click.BadParameter(message, error.ctx, option)
        case click.UsageError(message=message, ctx=click.Context(command=click.Command() as typed) as ctx) if type(
            error
        ) is click.UsageError and message.startswith("Got unexpected extra argument"):
            usage = " ".join(typed.collect_usage_pieces(ctx)[1:])
            return click.UsageError(f"{message}; {typed.name} takes {usage or 'options and nothing else'}", ctx)
        case _:
            return None


def _hint_of(name: str) -> str:
    """Return what is typed in place of an option that a command does not have; empty: not known."""
    others = [other for other, one in all_commands().items() if any(name in option.opts for option in one.params)]
    return _OPTIONS_ELSEWHERE.get(name) or (f"It is an option of {', '.join(others)}." if others else "")


def _with_metavar(error: click.BadOptionUsage, command: click.Command) -> str:
    """Return the message about an option without its value, with what is to be given."""
    for option in command.params:
        if isinstance(option, click.Option) and error.option_name in option.opts:
            value = _EXAMPLES.get(max(option.opts, key=len), option.make_metavar(click.Context(command)))
            return f"{error.message.rstrip('.')}, for example {error.option_name} {value}. {option.help or ''}".rstrip()
    return error.message


_COMMON: Final = frozenset({"RECONCILER_CLUSTER", "RECONCILER_JOURNAL", "RECONCILER_KUBECONFIG"})
_NEARLY: Final = 0.9
"""Two names of variables are so alike, from 0 to 1, that one is surely a slip."""


_OF_STORES: Final = ("RECONCILER_GIT_", "RECONCILER_OCI_")
"""Variables without an option begin so."""


def _warn_of_misspelt_variables(command: click.Command) -> None:
    """Name each variable that the command does not read and that is nearly one that it reads."""
    known = {parameter.envvar for parameter in command.params if isinstance(parameter.envvar, str)}
    for name in os.environ.keys() - known:
        if name.startswith("RECONCILER_") and not name.startswith(_OF_STORES):
            from difflib import get_close_matches

            from reconciler.cli.printing import remark

            for near in {*get_close_matches(name, known | _COMMON, 1, _NEARLY)} - {name}:
                remark(f"warning: {command.name} does not read {name}; did you mean {near}?")


def all_commands() -> dict[str, click.Command]:
    """Every command, imported."""
    context = click.Context(cli, **cli.context_settings)
    return {name: command for name in COMMANDS if (command := cli.get_command(context, name)) is not None}


def _load_config(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    # A misspelt key must not pass in silence, so every command is asked for its options.
    known = {key for command in all_commands().values() for key in option_keys(command)}
    ctx.obj, ctx.default_map = read_config(Path(value), known), {}


@click.group(cls=LazyGroup, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="reconciler")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    envvar="RECONCILER_CONFIG",
    callback=_load_config,
    expose_value=False,
    is_eager=True,
    help="YAML file with defaults of options, by their names.",
)
def cli() -> None:
    """Keeps many Kubernetes clusters equal to a fleet store: a directory or Git repository of workloads and policies.

    STORE is a directory, a Git work tree, a bare repository, a Git URL or oci://HOST/NAME:TAG. Every option can
    also be given as an environment variable (RECONCILER_KUBECONFIG) or as a key of the --config file.
    """


def main(argv: list[str] | None = None) -> Any:
    """Run the command line; faults of the world become one line on stderr and exit code 1."""
    sys.excepthook = report_crash
    # Trees of JSON hold no cycles: collections at the usual pace are a tenth of a command's time and free nothing.
    gc.set_threshold(50_000, 50, 100)
    # Nor do they when the process ends: the last collection of the interpreter would look at every object again.
    atexit.register(gc.freeze)
    try:
        return cli.main(args=without_equals(sys.argv[1:] if argv is None else argv), prog_name="reconciler")
    except ReconcilerError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader went away (`| head`), so it needs no more.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        from reconciler.containment import try_call

        if error.filename is None and error.errno == errno.ENOENT and try_call(Path.cwd).fault:
            _fail("the current folder is gone; change into one that is there")
        if error.filename is None and error.errno not in _NO_ROOM:
            raise
        if error.filename is None:
            with suppress(OSError):  # what is left in it would be written again, and fail again, at the end
                sys.stdout.close()
        from reconciler.journal.journal_lock import whose

        owner = whose(Path(str(error.filename))) if isinstance(error, PermissionError) else ""
        _fail(f"{error.filename or 'the output'}: {error.strerror}{owner}")
    except BaseExceptionGroup as group:
        # Clusters are worked on side by side: each fault of the world is a line of its own.
        faults, rest = group.split(ReconcilerError)
        if faults is None or rest is not None:
            raise
        _fail(*dict.fromkeys(map(str, _leaves(faults))))


_TRACED: Final = ("RECONCILER_TRACEBACK", "INVOCATION_ID", "KUBERNETES_SERVICE_HOST")
"""Variables with which the trace of a fault is printed as well: where asked for, and in the log of a service."""


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line about a fault of ours. A trace is printed in services, without credentials that it may quote."""
    import traceback

    from reconciler.api.problem import NOWHERE
    from reconciler.cli.printing import remark
    from reconciler.containment import internal_error

    if any(os.environ.get(name) for name in _TRACED):
        remark("".join(traceback.format_exception(kind, error, trace)))
    first = next(_leaves(error)) if isinstance(error, BaseExceptionGroup) else error
    if isinstance(first, Exception):
        rest = "RECONCILER_TRACEBACK=1 prints how it came about, and the next run takes up what was begun"
        remark(f"error: {internal_error(first, NOWHERE, 'this command', rest).message}")


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _fail(*messages: str) -> NoReturn:
    from reconciler.cli.printing import remark

    for message in messages:
        remark(f"error: {message}")
    sys.exit(1)


_EDIT = "what runs comes from the store: edit the file there and commit it; 'reconciler diff' shows what that changes"
_ONE_CLUSTER = (
    "that is a thing of one cluster: kubectl --context CLUSTER {name} does it; 'reconciler get' tells where it is"
)

_OF_KUBECTL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("annotate", "autoscale", "create", "edit", "expose", "label", "patch", "replace", "set", "taint"),
                    _EDIT),
    "scale": "policies divide spec.replicas of the template in the store: edit it there and commit that",
    "delete": "take the file out of the store and commit that; 'reconciler evict' takes it away from one cluster",
    "rollout": "a rollout is a commit: 'git revert' undoes one; 'reconciler status' and 'history' tell how far it is",
    **dict.fromkeys(("attach", "cp", "debug", "describe", "events", "exec", "logs", "port-forward", "proxy", "top",
                     "wait"), _ONE_CLUSTER),
    **dict.fromkeys(("cordon", "drain", "uncordon"), _ONE_CLUSTER),
    "config": "clusters are contexts of the kubeconfig: 'reconciler clusters' lists those of the store",
    "version": "'reconciler --version' tells",
    "plan": "'reconciler diff' shows the plan",
    "sync": "'reconciler apply' makes the clusters equal to the store; 'reconciler run' keeps them so",
    **dict.fromkeys(("app", "application", "applicationset", "appset", "helm", "project", "source"),
                    "documents of the store say what runs where: 'reconciler status' and 'get' list it"),
    **dict.fromkeys(("bootstrap", "cluster", "install", "login", "repo"),
                    "nothing is installed in clusters: 'reconciler init' writes a store, 'doctor' checks access"),
    **dict.fromkeys(("api-resources", "auth", "check", "cluster-info"),
                    "'reconciler doctor' checks access, rights and kinds in every cluster"),
    "refresh": "'reconciler now' asks the running service to look at everything",
    "rollback": "a rollback is a commit: 'git revert' the one that broke it",
    **dict.fromkeys(("trace", "tree"), "'reconciler explain KIND/NAME' says where it lives and why"),
    "export": "'reconciler import' writes live objects as templates",
    "uninstall": "end the service, and take the store's files out first if what runs is to go",
    "help": "add --help to a command, as in 'reconciler diff --help'",
    "reconcile": "'reconciler apply' makes the clusters equal to the store once; 'reconciler now' nudges the service",
}  # fmt: skip
"""Commands of kubectl, Terraform, Argo CD and Flux that people type, with their counterpart here."""


_OPTIONS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("-f", "--filename"), "The whole store is read: name its folder, and put the file into it."),
    **dict.fromkeys(("-k", "--kustomize", "--values"), "'reconciler hydrate' renders charts and kustomizations first."),
    **dict.fromkeys(("--dry-run", "--preview"), "'reconciler diff' shows what apply would change, and writes nothing."),
    **dict.fromkeys(
        ("-n", "--namespace", "-l", "--selector", "-A", "--all-namespaces"), "All is meant; --cluster NAME limits it."
    ),
    "--all": "Without options all is meant; -A of get is all namespaces.",
    "--once": "'reconciler apply' makes the clusters equal to the store once.",
    "--yes": "It asks nothing: only what writes to clusters does.",
    **dict.fromkeys(("--wait", "--timeout", "--atomic"), "'reconciler status' tells when all is well."),
    **dict.fromkeys(("--set", "--set-string", "--parameter"), "Values are in files of the store, and committed."),
    **dict.fromkeys(("-c", "--container", "-it", "--tail"), "Of a pod: 'kubectl --context CLUSTER' does it."),
    **dict.fromkeys(
        ("--context", "--cluster-name", "--kube-context"),
        "Clusters are documents of the store; --cluster NAME limits it.",
    ),
    **dict.fromkeys(("--auto-approve", "-y"), "--yes agrees to the plan."),
    **dict.fromkeys(("--prune", "--self-heal"), "What leaves the store is deleted or released, as its policy says."),
    **dict.fromkeys(("--force", "--force-conflicts"), "conflictResolution: Overwrite of a policy takes over."),
    **dict.fromkeys(("--revision", "--branch", "--ref"), "--rev names a branch, tag or commit."),
    **dict.fromkeys(("--show-labels", "--sort-by"), "-o yaml and -o json print all of each object."),
    **dict.fromkeys(("-v", "-V"), "--version tells the version."),
    **dict.fromkeys(("-R", "--recursive"), "Folders of the store are read with all below them."),
}
"""Options of kubectl, Terraform, Argo CD and Flux that people type, with their counterpart here."""


def unknown_command(name: str, known: Collection[str]) -> str:
    """Return the message for an unknown command."""
    if name in _OF_KUBECTL:
        return f"there is no command {name}: {_OF_KUBECTL[name].format(name=name)}"
    import difflib

    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}?" if close else "'reconciler --help' lists them"
    return f"there is no command {name}; {hint}"
