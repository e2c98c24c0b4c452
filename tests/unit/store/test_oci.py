"""An artifact of an OCI registry as a store: followed, refused, signed, and never by another's leave."""

from __future__ import annotations

import base64
import json
import subprocess
import tarfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from reconciler.clock import SystemClock
from reconciler.errors import ConfigurationError, RevisionNotFound, StoreError
from reconciler.store import StoreSource
from reconciler.store.git import parse_git_url
from reconciler.store.git.repository import ARTIFACTS, using_repository
from reconciler.store.oci import artifact as artifacts
from reconciler.store.source import Commits, open_source
from reconciler.store.url_source import clone_of, fetch_snapshot
from tests.fakes.git_server import needed
from tests.fakes.registry import ORAS, Registry, packed, pem
from tests.present import present
from tests.unit.store.test_source import content


@asynccontextmanager
async def followed(
    store: str, state: Path, environ: Mapping[str, str] | None = None, *, accept_rewinds: bool = False
) -> AsyncIterator[StoreSource]:
    source = await open_source(
        store, rev=None, as_directory=False, poll_s=0.05, state_folder=state, clock=SystemClock(),
        accept_rewinds=accept_rewinds, environ=environ or {},
    )  # fmt: skip
    try:
        yield source
    finally:
        await source.close()


async def accepted(source: StoreSource) -> dict[str, str]:
    """Return what the next reading brings; it comes into force."""
    await source.ask_now()
    snapshot = present(await source.read())
    source.accept(snapshot.revision, {})
    return {"": snapshot.revision, **content(snapshot)}


def auth_file(folder: Path, **logins: str) -> dict[str, str]:
    """The variable that names a file of logins by host."""
    file = folder / "config.json"
    auths = {host: {"auth": base64.b64encode(login.encode()).decode()} for host, login in logins.items()}
    file.write_text(json.dumps({"auths": auths}))
    file.chmod(0o600)
    return {"RECONCILER_OCI_AUTH_FILE": str(file)}


def key_file(folder: Path, *keys: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    file = folder / "cosign.pub"
    file.write_bytes(b"".join(map(pem, keys)))
    file.chmod(0o600)
    return {"RECONCILER_OCI_VERIFY_KEY": str(file)}


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


async def test_a_moved_tag_is_a_new_revision_with_a_past(tmp_path: Path) -> None:
    said = {
        "org.opencontainers.image.source": "https://git.example.com/fleet",
        "org.opencontainers.image.revision": "main@sha1:5f3c",
    }
    async with Registry() as registry:
        first = registry.push("prod", packed({"./a.yaml": "1", "sub/b.yaml": "b"}), annotations=said)
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            assert await accepted(source) == {"": first.removeprefix("sha256:"), "a.yaml": "1", "sub/b.yaml": "b"}
            assert source.description == f"{registry.store}:prod {first}"
            second = registry.push("prod", packed({"a.yaml": "2"}), packed({"c/c.yaml": "c"}), kind=ORAS)
            found = await accepted(source)
            assert found == {"": second.removeprefix("sha256:"), "a.yaml": "2", "c/c.yaml": "c"}
            old, new = (digest.removeprefix("sha256:") for digest in (first, second))
            assert source.ancestry([old], new).order == (old, new)
            named = (old[:12], f"sha256:{old[:12]}", f"sha256:{old}")
            assert source.resolve([*named, "prod", "sha256:0000000"]) == dict.fromkeys(named, old)
            recalled = source.recall(old)
            assert recalled is not None and recalled.revision == old
            assert content(recalled)["a.yaml"] == "1"
            source.keep([old])
        commits = Commits(f"{registry.store}:prod", lambda: [tmp_path])
        words = commits.words(old)
        assert words is not None and words[:2] == ("https://git.example.com/fleet", "main@sha1:5f3c")


async def test_a_registry_is_asked_for_no_more_than_is_new(tmp_path: Path) -> None:
    async with Registry() as registry:
        digest = registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(f"{registry.store}@{digest}", tmp_path) as source:
            await accepted(source)
            asked = len(registry.asked)
            await source.ask_now()
            assert await source.read() is None
            assert len(registry.asked) == asked, "a digest always names the same"
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            await accepted(source)
            del registry.asked[:]
            await source.ask_now()
            assert [(method, path) for method, path, _ in registry.asked] == [("HEAD", "/v2/fleet/manifests/prod")]


async def test_a_registry_that_tells_no_digest_is_followed(tmp_path: Path) -> None:
    async with Registry() as registry:
        registry.hides_digests = True
        digest = registry.push("latest", packed({"a.yaml": "1"}))
        async with followed(registry.store, tmp_path) as source:
            assert (await accepted(source))[""] == digest.removeprefix("sha256:")


async def test_a_tag_that_was_set_back_is_followed_only_if_that_is_wanted(tmp_path: Path) -> None:
    async with Registry() as registry:
        store = f"{registry.store}:prod"
        first = registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(store, tmp_path) as source:
            await accepted(source)
            registry.push("prod", packed({"a.yaml": "2"}))
            await accepted(source)
            registry.manifests["prod"] = registry.manifests[first]
            await source.ask_now()
            with pytest.raises(StoreError, match=r"was set back.*push another artifact, or.*--accept-rewinds"):
                await source.read()
        async with followed(store, tmp_path, accept_rewinds=True) as source:
            assert (await accepted(source))["a.yaml"] == "1"
        async with followed(store, tmp_path) as source:
            registry.push("prod", packed({"a.yaml": "3"}))
            assert (await accepted(source))["a.yaml"] == "3", "another artifact comes after those before it"


async def test_a_restart_while_the_registry_is_away_goes_on(tmp_path: Path) -> None:
    async with Registry() as registry:
        digest = registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            await accepted(source)
        registry.status = 503
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            snapshot = await source.read()
            assert snapshot is not None and snapshot.revision == digest.removeprefix("sha256:")
            assert "the registry answers 503; going on with" in source.note


async def test_a_command_reads_tags_beside_the_one_that_is_followed(tmp_path: Path) -> None:
    async with Registry() as registry:
        old = registry.push("v1", packed({"a.yaml": "1"}))
        registry.push("prod", packed({"a.yaml": "2"}))
        url = parse_git_url(f"{registry.store}:prod")

        async def read(rev: str | None) -> dict[str, str]:
            return content(await fetch_snapshot(url, rev, tmp_path / "git", {}, tell=lambda _: None))

        assert [await read(rev) for rev in (None, "v1", old, old.removeprefix("sha256:"))] == [
            {"a.yaml": "2"}, *3 * [{"a.yaml": "1"}],
        ]  # fmt: skip
        assert await read(old[:14]) == await read(old[:50]) == {"a.yaml": "1"}
        for rev, why in {
            "v2": "no tag v2",
            old[:13]: "no tag or digest of an artifact; a short one has seven digits",
            "sha256:0123456": "no artifact sha256:0123456… was pulled here; write all 64 digits, or its tag",
        }.items():
            with pytest.raises(RevisionNotFound, match=why):
                await read(rev)
        registry.manifests["prod"] = registry.manifests[old]
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            assert (await accepted(source))["a.yaml"] == "1", "what was read by name is no past of the tag"


async def test_a_short_digest_of_two_artifacts_is_refused(tmp_path: Path) -> None:
    async with Registry() as registry:
        registry.push("prod", packed({"a.yaml": "1"}))
        url = parse_git_url(f"{registry.store}:prod")
        clones = tmp_path / "git"
        found = await fetch_snapshot(url, None, clones, {}, tell=lambda _: None)
        digest, folder = found.revision, clone_of(url, clones)
        with using_repository(folder) as repository:
            twin = digest[:-1] + ("0" if digest[-1] != "0" else "1")
            repository.references.create(ARTIFACTS + twin, repository.references[ARTIFACTS + digest].target)
        with pytest.raises(RevisionNotFound, match=f"sha256:{digest[:7]} is ambiguous: sha256:.*write more digits"):
            await fetch_snapshot(url, f"sha256:{digest[:7]}", clones, {}, tell=lambda _: None)


def link() -> tarfile.TarInfo:
    found = tarfile.TarInfo("a.yaml")
    found.type, found.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return found


def index(registry: Registry) -> None:
    registry.put("prod", json.dumps({"schemaVersion": 2, "manifests": [{"digest": "x"}] * 9}).encode())


def other_blob(registry: Registry) -> None:
    registry.push("prod", packed({"a.yaml": "2"}))
    registry.blobs = dict.fromkeys(registry.blobs, packed({"a.yaml": "3"}))


def other_manifest(registry: Registry) -> None:
    digest = registry.push("prod", packed({"a.yaml": "2"}))
    registry.manifests[digest] = registry.manifests["prod"] + b" "
    registry.manifests["prod"] = registry.manifests["prod"]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda one: setattr(one, "status", 404), "no tag prod"),
        (lambda one: setattr(one, "status", 403), "forbids access"),
        (lambda one: setattr(one, "status", 429), "wants fewer requests"),
        (lambda one: one.put("prod", b"[" * 100_000), "its manifest cannot be read"),
        (lambda one: one.put("prod", b" " * (4 * 2**20 + 1)), "answers with more than 4,194,304 bytes"),
        (index, "index of 9 manifests"),
        (lambda one: one.push("prod", b"x", kind="application/vnd.cncf.helm.chart.content.v1"), "it has a layer of"),
        (lambda one: one.push("prod"), "no layer"),
        (lambda one: one.push("prod", *(packed({f"{each}.yaml": ""}) for each in range(65))), "more than 64 layers"),
        (lambda one: one.push("prod", b"no archive"), "cannot be unpacked"),
        (lambda one: one.push("prod", packed({}, (link(),))), "is a link or leads out of it"),
        (lambda one: one.push("prod", packed({"../a.yaml": "2"})), "is a link or leads out of it"),
        (lambda one: one.push("prod", packed({"a.yaml": "2"}), packed({"a.yaml": "3"})), "'a.yaml' twice"),
        (lambda one: one.push("prod", packed({"a": "2", "a/b.yaml": "3"})), "which no store can have"),
        (lambda one: one.push("prod", packed({".git/config": "2"})), "which no store can have"),
        (other_blob, "is not sha256:"),
        (other_manifest, "is not sha256:"),
    ],
)  # fmt: skip
async def test_what_is_no_store_leaves_the_last_one(
    spoil: Callable[[Registry], object], why: str, tmp_path: Path
) -> None:
    async with Registry() as registry:
        registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            await accepted(source)
            spoil(registry)
            with pytest.raises(StoreError, match=why) as found:
                await source.ask_now()
            assert str(found.value).startswith(f"{registry.store}:prod: ")
            registry.status = 0
            registry.push("prod", packed({"a.yaml": "4"}))
            assert (await accepted(source))["a.yaml"] == "4"


async def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "UNPACKED_BYTES_MAX", 2**20)
    async with Registry() as registry:
        registry.push("prod", packed({"a.yaml": " " * 600_000}), packed({"b.yaml": " " * 600_000}))
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            with pytest.raises(StoreError, match="cannot be unpacked: it holds more than"):
                await source.ask_now()


async def test_closing_ends_a_pull_from_a_silent_registry(tmp_path: Path) -> None:
    async with Registry() as registry:
        registry.is_silent = True
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            pull = source._fetch_task()  # type: ignore[attr-defined]  # the task that nobody waits for
            while not registry.asked:
                await SystemClock().sleep(0.01)
        assert pull.done()


async def test_signed_artifacts_alone_come_into_force_where_a_key_is_named(tmp_path: Path) -> None:
    key, other, third = new_key(), new_key(), new_key()
    environ = key_file(tmp_path, other, key)
    async with Registry() as registry:
        store = f"{registry.store}:prod"
        registry.sign(registry.push("prod", packed({"a.yaml": "1"})), key)
        async with followed(store, tmp_path, environ) as source:
            assert (await accepted(source))["a.yaml"] == "1"
            unsigned = registry.push("prod", packed({"a.yaml": "2"}))
            with pytest.raises(StoreError, match=f"{unsigned} is not signed"):
                await source.ask_now()
            registry.sign(unsigned, third)
            with pytest.raises(
                StoreError, match=r"none of the 1 signatures .* is of a key in RECONCILER_OCI_VERIFY_KEY /.*cosign.pub;"
            ):
                await source.ask_now()
            registry.sign(unsigned, key, named=f"sha256:{'0' * 64}")
            with pytest.raises(StoreError, match="none of the 1 signatures"):
                await source.ask_now()
            registry.sign_as_bundle(unsigned, key, "https://cosign.sigstore.dev/attestation/vuln/v1")
            with pytest.raises(StoreError, match="none of the 1 signatures"):
                await source.ask_now()
            registry.sign_as_bundle(unsigned, key)
            assert (await accepted(source))["a.yaml"] == "2"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n", "holds a key that cannot be read"),
        ("cosign", "holds no public key in PEM"),
    ],
)
async def test_a_key_that_cannot_be_read_is_told_with_its_file(text: str, fault: str, tmp_path: Path) -> None:
    environ = key_file(tmp_path)
    (tmp_path / "cosign.pub").write_text(text)
    async with Registry() as registry:
        registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(f"{registry.store}:prod", tmp_path, environ) as source:
            with pytest.raises(StoreError, match=f"RECONCILER_OCI_VERIFY_KEY {tmp_path}/cosign.pub: it {fault}"):
                await source.ask_now()


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1()])
async def test_a_bundle_counts_whatever_type_the_registry_lists(curve: ec.EllipticCurve, tmp_path: Path) -> None:
    key = ec.generate_private_key(curve)
    async with Registry() as registry:
        digest = registry.push("prod", packed({"a.yaml": "1"}))
        registry.sign_as_bundle(digest, new_key())
        registry.sign_as_bundle(digest, key, listed_type="application/vnd.oci.empty.v1+json")
        async with followed(f"{registry.store}:prod", tmp_path, key_file(tmp_path, key)) as source:
            assert (await accepted(source))["a.yaml"] == "1"


async def test_a_key_that_is_named_later_holds_for_what_is_there(tmp_path: Path) -> None:
    async with Registry() as registry:
        digest = registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            await accepted(source)
        key = new_key()
        async with followed(f"{registry.store}:prod", tmp_path, key_file(tmp_path, key)) as source:
            present(await source.read())
            assert f"{digest} is not signed" in source.note
            assert "going on with" in source.note
            registry.sign(digest, key)
            await source.ask_now()
            assert await source.read() is None
            assert source.note == ""


@pytest.mark.parametrize("token", ["", "t0ken"])
async def test_a_login_is_that_of_the_host_in_the_file(token: str, tmp_path: Path) -> None:
    async with Registry(login="me:secret", token=token) as registry:
        registry.push("prod", packed({"a.yaml": "1"}))
        store, host = f"{registry.store}:prod", f"localhost:{registry.port}"
        for environ in ({}, auth_file(tmp_path, **{"other.example.com": "me:secret"})):
            async with followed(store, tmp_path, environ) as source:
                with pytest.raises(StoreError, match="RECONCILER_OCI_AUTH_FILE has none"):
                    await source.ask_now()
        async with followed(store, tmp_path, auth_file(tmp_path, **{host: "me:wrong"})) as source:
            with pytest.raises(StoreError, match="does not accept the login") as found:
                await source.ask_now()
            assert "wrong" not in str(found.value)
        async with followed(store, tmp_path, auth_file(tmp_path, **{f"https://{host}/v2/": "me:secret"})) as source:
            assert (await accepted(source))["a.yaml"] == "1"


async def test_a_login_and_a_token_go_to_no_other_host(tmp_path: Path) -> None:
    async with Registry(login="me:secret", token="t0ken") as registry, Registry(token="") as stranger:
        registry.push("prod", packed({"a.yaml": "1"}))
        stranger.blobs = registry.blobs
        host, other = f"localhost:{registry.port}", f"localhost:{stranger.port}"
        environ = auth_file(tmp_path, **{host: "me:secret", other: "you:hidden"})
        registry.realm = f"http://{other}/token?scope=repository:private:pull"
        async with followed(f"{registry.store}:prod", tmp_path, environ) as source:
            with pytest.raises(StoreError, match=f"for a token to {other}, which does not get the login of {host}"):
                await source.ask_now()
            assert not stranger.asked
            registry.realm, registry.blobs_at = "", f"http://{other}"
            assert (await accepted(source))["a.yaml"] == "1"
            assert {sent for _, _, sent in stranger.asked} == {""}
            registry.push("prod", packed({"a.yaml": "2"}))
            registry.blobs_at = "http://169.254.169.254"
            with pytest.raises(StoreError, match="an address that is not https://"):
                await source.ask_now()
            registry.blobs_at = f"http://localhost:{registry.port}"
            with pytest.raises(StoreError, match="round in circles"):
                await source.ask_now()


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [("{}", 0o600, "is no config.json"), ('{"auths": []}', 0o600, "is no config.json"), ("{}", 0o644, "everybody")],
)
async def test_a_file_of_logins_is_read_as_other_secrets(text: str, mode: int, why: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    file.chmod(mode)
    async with followed("oci://localhost/fleet", tmp_path, {"RECONCILER_OCI_AUTH_FILE": str(file)}) as source:
        with pytest.raises(StoreError, match=f"RECONCILER_OCI_AUTH_FILE {file}: .*{why}"):
            await source.ask_now()


async def test_a_file_of_authorities_that_is_cut_off_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n")
    async with followed("oci://localhost/fleet", tmp_path, {"RECONCILER_OCI_CA": str(file)}) as source:
        with pytest.raises(StoreError, match=f"RECONCILER_OCI_CA {file}: it holds no certificate that can be read"):
            await source.ask_now()


async def test_an_authority_of_ones_own_vouches_for_a_registry(tmp_path: Path) -> None:
    certificate, private = tmp_path / "tls.crt", tmp_path / "tls.key"
    subprocess.run(
        [needed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.2",
         "-keyout", str(private), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    async with Registry(certificate=(certificate, private)) as registry:
        registry.push("prod", packed({"a.yaml": "1"}))
        async with followed(f"{registry.store}:prod", tmp_path) as source:
            with pytest.raises(StoreError, match=r"is not trusted.*RECONCILER_OCI_CA"):
                await source.ask_now()
        async with followed(f"{registry.store}:prod", tmp_path, {"RECONCILER_OCI_CA": str(certificate)}) as source:
            assert (await accepted(source))["a.yaml"] == "1"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("oci://ghcr.io/org/fleet", "oci://ghcr.io/org/fleet:latest"),
        ("oci://localhost:5000/fleet:v1//clusters", "oci://localhost:5000/fleet:v1//clusters"),
        (f"oci://h.example/fleet:v1@sha256:{'a' * 64}", f"oci://h.example/fleet@sha256:{'a' * 64}"),
    ],
)
def test_an_artifact_is_named_as_registries_do(text: str, shown: str) -> None:
    assert str(parse_git_url(text)) == shown


@pytest.mark.parametrize("text", [
    "oci://me:secret@h.example/fleet", "oci://h.example", "oci://h.example/Fleet", "oci://h.example/a/../b",
    "oci://h.example/fleet@sha256:abc", "oci://h.example/fleet:v1//../x",
])  # fmt: skip
def test_other_names_are_refused_without_their_secrets(text: str) -> None:
    with pytest.raises(ConfigurationError) as found:
        parse_git_url(text)
    assert "secret" not in str(found.value)


async def test_a_tag_is_named_in_the_store_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name the tag or digest in STORE: oci://localhost/fleet:TAG"):
        await open_source(
            "oci://localhost/fleet", rev="v1", as_directory=False, poll_s=1, state_folder=tmp_path,
            clock=SystemClock(), environ={},
        )  # fmt: skip
