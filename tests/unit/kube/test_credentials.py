from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import ssl
import weakref
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from reconciler.clock import epoch_s, rfc3339
from reconciler.errors import ClusterUnreachable, CredentialsRejected
from reconciler.kube import MemberConfig, Pem
from reconciler.kube.connection.cluster_credentials import (
    FAILURE_AGE_MAX_S,
    PLUGIN_DEADLINE_S,
    PLUGIN_PATIENCE_S,
    Credentials,
    run_plugin,
)
from reconciler.kube.connection.session import SharedContexts
from tests.fakes.clocks import TestClock
from tests.fakes.virtual_time import leap
from tests.fakes.waiting import until

API = "client.authentication.k8s.io/v1"


def credentials(clock: TestClock | None = None, **config: Any) -> Credentials:
    config.setdefault("server", "http://m1.example")
    return Credentials(MemberConfig(name="m1", **config), clock or TestClock())


async def authorization(found: Credentials) -> str:
    return dict(await found.headers()).get("Authorization", "")


def plugin(folder: Path, body: str, **entry: Any) -> dict[str, Any]:
    """A kubeconfig's exec entry for a script next to the kubeconfig."""
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o700)
    return {"apiVersion": API, "command": "./plugin", **entry}


def printing(**status: Any) -> str:
    credential = {"apiVersion": API, "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(credential)}\nEND"


async def test_a_token_goes_into_the_header() -> None:
    assert await authorization(credentials(token="t")) == "Bearer t"


async def test_a_name_and_a_password_go_into_the_header() -> None:
    expected = "Basic " + b64encode(b"u:p").decode()
    assert await authorization(credentials(username="u", password="p")) == expected


async def test_impersonation_has_a_header_for_each_group() -> None:
    headers = await credentials(impersonate={"Impersonate-Group": ("a", "b")}).headers()
    assert headers == (("Impersonate-Group", "a"), ("Impersonate-Group", "b"))


async def test_a_token_file_comes_before_a_token_and_is_read_again_after_a_minute(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", TestClock()
    file.write_text("one\n")
    found = credentials(clock, token_file=file, token="inline")
    assert await authorization(found) == "Bearer one"
    file.write_text("two\n")
    assert await authorization(found) == "Bearer one"
    clock.advance(61)
    assert await authorization(found) == "Bearer two"


async def test_a_token_file_that_is_gone_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(CredentialsRejected, match="token cannot be read"):
        await credentials(token_file=tmp_path / "token").headers()


async def test_a_plugin_runs_once_for_many_and_again_when_its_token_runs_out(tmp_path: Path) -> None:
    clock = TestClock()
    body = f"echo run >>{tmp_path}/runs\n" + printing(token="t", expirationTimestamp=rfc3339(1_800_000_000 + 3600))
    found = credentials(clock, exec_plugin=plugin(tmp_path, body), folder=tmp_path)
    await asyncio.gather(*(found.headers() for _ in range(20)))
    assert (tmp_path / "runs").read_text().count("run") == 1
    clock.advance(3595)
    assert await authorization(found) == "Bearer t"
    assert (tmp_path / "runs").read_text().count("run") == 2


async def test_a_plugin_whose_tokens_have_always_expired_does_not_run_for_each_request(tmp_path: Path) -> None:
    clock = TestClock()
    body = f"echo run >>{tmp_path}/runs\n" + printing(token="t", expirationTimestamp="0001-01-01T00:00:00Z")
    found = credentials(clock, exec_plugin=plugin(tmp_path, body), folder=tmp_path)
    assert [await authorization(found) for _ in range(5)] == ["Bearer t"] * 5
    assert (tmp_path / "runs").read_text().count("run") == 1
    clock.advance(FAILURE_AGE_MAX_S)
    assert await authorization(found) == "Bearer t"
    assert (tmp_path / "runs").read_text().count("run") == 2


async def test_an_authority_that_a_plugin_is_to_be_told_and_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    entry, ca = plugin(tmp_path, printing(token="t"), provideClusterInfo=True), Pem(file=tmp_path / "ca.pem")
    with pytest.raises(CredentialsRejected, match=f"{ca.file} cannot be read: No such file or directory; put it"):
        await credentials(exec_plugin=entry, folder=tmp_path, ca=ca).headers()


async def test_a_good_token_is_used_on_while_its_plugin_fails_and_the_plugin_is_run_again(tmp_path: Path) -> None:
    clock = TestClock()
    body = f"cat {tmp_path}/answer 2>/dev/null || {{ echo log in >&2; exit 1; }}\n"
    found = credentials(clock, exec_plugin=plugin(tmp_path, body), folder=tmp_path)

    def answer(token: str) -> None:
        told = {"apiVersion": API, "kind": "ExecCredential",
                "status": {"token": token, "expirationTimestamp": rfc3339(epoch_s(clock.now()) + 60)}}  # fmt: skip
        (tmp_path / "answer").write_text(json.dumps(told))

    answer("one")
    assert await authorization(found) == "Bearer one"
    (tmp_path / "answer").unlink()
    clock.advance(120)
    assert await authorization(found) == "Bearer one", "whether it is taken still is for the API server to say"
    with pytest.raises(CredentialsRejected, match="ended with 1: log in"):
        await found.renew(found.generation)
    answer("two")
    clock.advance(FAILURE_AGE_MAX_S)
    assert await authorization(found) == "Bearer two"


async def test_a_plugin_gets_its_arguments_its_environment_and_the_cluster(tmp_path: Path) -> None:
    body = f'echo "$1 $COLOUR" >{tmp_path}/seen; echo "$KUBERNETES_EXEC_INFO" >{tmp_path}/info\n' + printing(token="t")
    entry = plugin(tmp_path, body, args=["one"], env=[{"name": "COLOUR", "value": "red"}], provideClusterInfo=True)
    found = credentials(exec_plugin=entry, folder=tmp_path, ca=Pem(data=b"CA"), tls_server_name="x.example")
    assert await authorization(found) == "Bearer t"
    assert (tmp_path / "seen").read_text() == "one red\n"
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": API,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "http://m1.example",
                "tls-server-name": "x.example",
                "certificate-authority-data": b64encode(b"CA").decode(),
            },
        },
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo 'please log in' >&2; echo hunter2; exit 3", "ended with 3: please log in"),
        ("echo hunter2", "printed no ExecCredential"),
        ("yes hunter2", "printed more than 1,048,576 bytes"),
        ("yes hunter2 >&2", "printed more than 1,048,576 bytes"),
        ('echo \'{"kind":"hunter2"}\'', "printed no ExecCredential"),
        (printing(), "neither a token nor a client certificate"),
        (printing(clientCertificateData="hunter2"), "neither a token nor a client certificate"),
        (printing(clientCertificateData=5, clientKeyData=["hunter2"]), "neither a token nor a client certificate"),
        (printing(token="hunter2", expirationTimestamp="never"), "is no time"),
    ],
)
async def test_a_plugin_that_gives_nothing_usable_says_why_and_not_what(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(CredentialsRejected, match=words) as error:
        await credentials(exec_plugin=plugin(tmp_path, body), folder=tmp_path).headers()
    assert "hunter2" not in str(error.value)


async def test_a_plugin_that_is_not_there_or_not_described_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsRejected, match="absent cannot be started"):
        await credentials(exec_plugin={"apiVersion": API, "command": "./absent"}, folder=tmp_path).headers()
    with pytest.raises(CredentialsRejected, match="command"):
        await credentials(exec_plugin={"apiVersion": API}, folder=tmp_path).headers()


async def hung(entry: dict[str, Any], folder: Path) -> str:
    """The number of the process that the plugin told of, after it was waited for in vain until its deadline."""
    clock = TestClock()
    found = credentials(clock, exec_plugin=entry, folder=folder)
    asking = asyncio.create_task(found.headers())
    pid = folder / "pid"
    while not pid.exists() or not pid.read_text().endswith("\n"):
        assert not asking.done()
        await asyncio.sleep(0.01)  # a process writes the file
    leap(PLUGIN_PATIENCE_S)
    with pytest.raises(ClusterUnreachable, match=r"exec plugin ./plugin gives no answer \(waited 4 s\)"):
        await asking
    clock.advance(6)
    leap(PLUGIN_DEADLINE_S)
    async with asyncio.timeout(60):
        await found.log_in()
        with pytest.raises(ClusterUnreachable, match="gave no answer in 30 s"):
            await found.headers()
    return pid.read_text().strip()


async def test_a_plugin_that_hangs_is_named_and_killed_at_last(tmp_path: Path) -> None:
    pid = await hung(plugin(tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 600"), tmp_path)
    assert not Path(f"/proc/{pid}").exists()


async def test_what_a_plugin_that_hangs_has_started_is_killed_too(tmp_path: Path) -> None:
    pid = await hung(plugin(tmp_path, f"sleep 600 &\necho $! >{tmp_path}/pid; wait"), tmp_path)
    await until(lambda: not is_running(pid))


async def test_a_plugin_whose_child_has_left_its_group_holds_nobody_up(tmp_path: Path) -> None:
    """It keeps the pipes open, and whoever waits for their ends waits as long as it lives."""
    entry = plugin(tmp_path, f"setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 600' &\nwait")
    config = MemberConfig(name="m1", server="http://m1.example", exec_plugin=entry, folder=tmp_path)
    asking = asyncio.create_task(run_plugin(config, entry))
    await until((tmp_path / "pid").exists)
    try:
        asking.cancel()
        async with asyncio.timeout(20):
            await asyncio.wait((asking,))
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert asking.cancelled()


async def test_who_waits_for_a_plugin_is_told_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "go")
    found = credentials(exec_plugin=plugin(tmp_path, f"cat {tmp_path}/go"), folder=tmp_path)
    waiting = asyncio.create_task(found.log_in())
    await asyncio.sleep(0)
    assert not caplog.messages
    leap(PLUGIN_PATIENCE_S)
    await until(lambda: bool(caplog.messages))
    assert not waiting.done()
    (tmp_path / "go").write_text("")
    await waiting
    assert caplog.messages == ["m1: waiting for exec plugin ./plugin, which gives no answer yet"]


async def test_a_slow_plugin_gets_to_its_end_whoever_stops_waiting(tmp_path: Path) -> None:
    entry = plugin(tmp_path, f"echo run >>{tmp_path}/runs; cat {tmp_path}/go; {printing(token='late')}")
    os.mkfifo(tmp_path / "go")
    found = credentials(exec_plugin=entry, folder=tmp_path)
    asking = asyncio.create_task(found.headers())
    await until((tmp_path / "runs").exists)
    asking.cancel()
    await asyncio.wait((asking,))
    (tmp_path / "go").write_text("")
    await found.log_in()
    assert await authorization(found) == "Bearer late"
    assert (tmp_path / "runs").read_text() == "run\n"


def is_running(pid: int | str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_many_who_wait_for_a_plugin_that_fails_wait_for_it_once(tmp_path: Path) -> None:
    clock = TestClock()
    entry = plugin(tmp_path, f"echo run >>{tmp_path}/runs; exit 3")
    found = credentials(clock, exec_plugin=entry, folder=tmp_path)
    done = await asyncio.gather(*(found.headers() for _ in range(20)), return_exceptions=True)
    assert {str(error) for error in done} == {f"m1: exec plugin {tmp_path}/plugin ended with 3: "}
    assert (tmp_path / "runs").read_text().count("run") == 1
    clock.advance(6)
    with pytest.raises(CredentialsRejected):
        await found.headers()
    assert (tmp_path / "runs").read_text().count("run") == 2


async def test_a_context_trusts_nothing_but_the_clusters_own_authority() -> None:
    found = credentials(server="https://m1.example", ca=Pem(data=CERTIFICATE.encode()))
    await found.headers()
    assert isinstance(found.context, ssl.SSLContext)
    assert [dict(entry)["serialNumber"] for entry in found.context.get_ca_certs()] == ["01"]
    assert found.context.verify_mode is ssl.CERT_REQUIRED
    assert found.context.check_hostname


async def test_verification_is_off_only_when_the_kubeconfig_says_so() -> None:
    found = credentials(server="https://m1.example", is_insecure=True)
    await found.headers()
    assert isinstance(found.context, ssl.SSLContext)
    assert found.context.verify_mode is ssl.CERT_NONE


async def test_a_broken_certificate_is_named_by_its_file_and_not_quoted() -> None:
    config: dict[str, Any] = {"server": "https://m1.example", "source": "/etc/fleet/m1.yaml"}
    each: tuple[dict[str, Any], ...] = (
        {"ca": Pem(data=b"hunter2")},
        {"client_certificate": Pem(data=b"hunter2"), "client_key": Pem(data=b"hunter2"), "is_insecure": True},
    )
    for broken in each:
        with pytest.raises(CredentialsRejected, match=r"/etc/fleet/m1\.yaml is unusable") as error:
            await credentials(**config, **broken).headers()
        assert "hunter2" not in str(error.value)


@pytest.mark.filterwarnings("ignore:datetime.datetime.utc:DeprecationWarning")  # of that package
async def test_an_auth_provider_of_old_is_left_to_the_kubernetes_package() -> None:
    # A token that runs out in the year 2100: header and signature are not looked at.
    claims = b64encode(json.dumps({"exp": 4_102_444_800}).encode()).decode().rstrip("=")
    entry = {"name": "oidc", "config": {"id-token": f"e30.{claims}.c2ln"}}
    assert await authorization(credentials(auth_provider=entry)) == f"Bearer e30.{claims}.c2ln"
    with pytest.raises(CredentialsRejected, match="auth-provider 'oidc' failed"):
        await credentials(auth_provider={"name": "oidc", "config": {"id-token": "hunter2"}}).headers()


CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBaTCCAQ6gAwIBAgIBATAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAd0ZXN0LWNh
MCAXDTI2MTEyMTExMDUxN1oYDzIxMjYxMDI4MTEwNTE3WjASMRAwDgYDVQQDDAd0
ZXN0LWNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqYUhZlxWbQH6m2LdAbok
zSPF90pLoFD9vZtjanpH739FAp59EgYmm0+J+q80nsVNW//iuw2HWWzaThPy5aV6
4qNTMFEwHQYDVR0OBBYEFNX3/fNYF+KXGOsbzhzIskNzFZz6MB8GA1UdIwQYMBaA
FNX3/fNYF+KXGOsbzhzIskNzFZz6MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0E
AwIDSQAwRgIhAP6EA3BFEAkFbNg1P5wc4wHOQ5bD1FFMqqL+LYgyHruOAiEAl99U
6zY1XuoN0TYQIs8tmoTZSxwH/dyakKJkUfOc7jo=
-----END CERTIFICATE-----
"""


async def test_a_plugin_that_asks_is_told_what_the_cluster_has_for_it(tmp_path: Path) -> None:
    body = f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/asked\n' + printing(token="t")
    for asks in (True, False):
        entry = plugin(tmp_path, body, provideClusterInfo=asks)
        found = credentials(exec_plugin=entry, folder=tmp_path, exec_extension={"audience": "a"})
        assert await authorization(found) == "Bearer t"
        told = json.loads((tmp_path / "asked").read_text())["spec"]
        assert ("cluster" in told) is asks
        assert not asks or told["cluster"]["config"] == {"audience": "a"}


async def context_of(contexts: SharedContexts, **config: Any) -> ssl.SSLContext:
    found = Credentials(MemberConfig(name="m1", server="https://m1.example", **config), TestClock(), contexts)
    await found.headers()
    assert isinstance(found.context, ssl.SSLContext)
    return found.context


async def test_clusters_with_the_same_certificates_share_a_context_and_no_others_do() -> None:
    contexts, ca = SharedContexts(), Pem(data=CERTIFICATE.encode())
    own = await context_of(contexts, ca=ca)
    assert await context_of(contexts, ca=ca, token="another person") is own
    others = [
        await context_of(contexts, ca=ca, tls_server_name="m2.example"),
        await context_of(contexts, ca=Pem(data=(CERTIFICATE + "\n").encode())),
        await context_of(contexts, is_insecure=True),
        await context_of(contexts),
    ]
    assert len({id(context) for context in (own, *others)}) == 5
    assert await context_of(contexts) is others[-1], "the authorities of the system are read once"


async def test_a_context_goes_with_the_last_cluster_that_uses_it() -> None:
    contexts = SharedContexts()
    gone = weakref.ref(await context_of(contexts, is_insecure=True))
    gc.collect()
    assert gone() is None


async def test_the_authorities_of_the_system_are_read_again_when_they_were_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "authorities.pem"
    bundle.write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    contexts = SharedContexts()
    before = await context_of(contexts)
    os.utime(bundle, ns=(1, 1))
    assert await context_of(contexts) is not before


async def test_a_cluster_that_is_distrusted_gets_a_context_of_its_own_and_the_others_keep_theirs() -> None:
    contexts, ca = SharedContexts(), Pem(data=CERTIFICATE.encode())
    found, other = (
        Credentials(MemberConfig(name=name, server="https://m.example", ca=ca), TestClock(), contexts)
        for name in ("m1", "m2")
    )
    await found.headers()
    await other.headers()
    before = found.context
    assert other.context is before
    found.distrust()
    await found.headers()
    assert found.context is not before
    assert other.context is before
