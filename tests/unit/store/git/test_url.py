from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import ConfigurationError, RevisionNotFound, StoreError
from reconciler.store.git import is_git_url, parse_git_url
from reconciler.store.git.url import access_from, check_revision

URLS = [
    ("https://example.com/org/fleet.git", "https://example.com/org/fleet.git"),
    ("HTTPS://Example.com:8443/fleet/", "https://example.com:8443/fleet/"),
    ("ssh://git@example.com:2222/fleet.git", "ssh://git@example.com:2222/fleet.git"),
    ("ssh://example.com/~ann/fleet", "ssh://git@example.com/~ann/fleet"),
    ("git@example.com:org/fleet.git", "ssh://git@example.com/org/fleet.git"),
    ("example.com:org/fleet.git", "ssh://git@example.com/org/fleet.git"),
    ("https://[2001:db8::1]:8443/fleet", "https://[2001:db8::1]:8443/fleet"),
    ("file:///srv/fleet.git", "file:///srv/fleet.git"),
    ("http://127.0.0.1:3000/fleet.git", "http://127.0.0.1:3000/fleet.git"),
    ("https://example.com/a%20b/fleet", "https://example.com/a%20b/fleet"),
]


@pytest.mark.parametrize(("text", "address"), URLS)
def test_reads_the_spellings_of_git(text: str, address: str) -> None:
    assert is_git_url(text)
    assert parse_git_url(text).address == address


@pytest.mark.parametrize("text", [".", "fleet", "/srv/fleet.git", "../a:b", "C:fleet", "a/b@c:d", "fleet@2"])
def test_folders_are_no_urls(text: str) -> None:
    assert not is_git_url(text)


def test_two_slashes_begin_the_folder_of_the_store() -> None:
    for text in ("https://example.com/fleet.git//teams/shop", "git@example.com:/fleet.git//teams/shop/"):
        url = parse_git_url(text)
        assert (url.path, url.subdir) == ("/fleet.git", "teams/shop")
        assert str(url).endswith("/fleet.git//teams/shop")


def test_clones_are_shared_by_folders_of_one_repository_and_by_nothing_else() -> None:
    one = parse_git_url("https://ann:pw@example.com/fleet.git//a")
    assert one.digest == parse_git_url("https://example.com/fleet.git//b").digest
    assert one.digest != parse_git_url("https://example.com/fleet2.git").digest
    assert one.digest != parse_git_url("https://example.com:444/fleet.git").digest


def test_what_is_secret_in_a_url_is_never_shown() -> None:
    url = parse_git_url("https://ann:hunter2%40x@example.com/fleet.git")
    assert (url.user, url.password) == ("ann", "hunter2@x")
    for shown in (str(url), repr(url), url.address):
        assert "hunter2" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com/fleet.git", "git://example.com/fleet.git", "ftp://example.com/x",
        "ssh://-oProxyCommand=id/x", "git@-oProxyCommand=id:x.git", "ssh://-x@example.com/fleet",
        "https://example.com/-x", "https://example.com/a/--upload-pack=id", "git@example.com:--upload-pack=id.git",
        "https://example.com/", "https:///x", "file://elsewhere/srv/fleet.git", "file://", "https://example.com/a?b=c",
        "https://example.com/a#b", "https://exa mple.com/x", "https://example.com/a\x00b", "https://example.com/a\nb",
        "https://example.com:99999/x", "https://example.com/x//../y", "https://example.com/x//a/./b",
        "https://exa$mple.com/x", "https://example.com/%0aHost:x", "https://ann:hunter2@/x",
    ],
)  # fmt: skip
def test_refuses_what_could_mean_something_else(text: str) -> None:
    assert is_git_url(text)
    with pytest.raises(ConfigurationError) as caught:
        parse_git_url(text)
    assert "hunter2" not in str(caught.value)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_no_url_crashes_or_leaks_control_characters(rest: str) -> None:
    for text in (f"https://u:hunter2@{rest}", f"git@h.example:{rest}", f"ssh://{rest}", f"https://example.com/{rest}"):
        if not is_git_url(text):
            continue
        try:
            url = parse_git_url(text)
        except ConfigurationError as error:
            assert str(error).isprintable()
        else:
            assert str(url).isprintable()
            assert not url.host.startswith("-")
            assert "/-" not in url.path


GIT = parse_git_url("https://git.example.com/fleet.git")


@pytest.mark.parametrize("rev", ["main", "release-1.2", "feature/x", "v1.0", "refs/tags/v1", "a" * 40, "HEAD"])
def test_takes_names_of_branches_tags_and_commits(rev: str) -> None:
    assert check_revision(rev, GIT) == rev


@pytest.mark.parametrize(
    "rev", ["", "-x", "--all", "a..b", "main~1", "main^", "a:b", "+main", "refs/*", "a b", "x\n", "main@{1}", "a.lock"]
)
def test_refuses_other_revisions(rev: str) -> None:
    with pytest.raises(RevisionNotFound):
        check_revision(rev, GIT)


@pytest.mark.parametrize("variable", ["RECONCILER_GIT_CA", "RECONCILER_GIT_KNOWN_HOSTS"])
def test_a_public_file_of_access_that_is_a_pipe_or_gone_is_named_and_holds_nobody_up(
    tmp_path: Path, variable: str
) -> None:
    file = tmp_path / "file"
    url = parse_git_url("https://a.example/x.git" if variable.endswith("CA") else "ssh://a.example/x.git")
    with pytest.raises(StoreError, match=f"{file} cannot be read: No such file or directory; put it there"):
        access_from({variable: str(file)}, url)
    os.mkfifo(file)
    with pytest.raises(StoreError, match=f"{file}: it is a folder, pipe or socket; name a file"):
        access_from({variable: str(file)}, url)
