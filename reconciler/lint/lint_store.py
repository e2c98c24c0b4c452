"""Checks of a store that need no cluster, and gaps in the check of pull requests. Source: design#lint."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.fleet import Fleet
from reconciler.api.policies import ClusterAffinity
from reconciler.api.problem import NOWHERE, Problem, Severity, Source, warning
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Staging
from reconciler.containment import internal_error, try_call
from reconciler.fleet import why_nameless
from reconciler.kinds.registry import Registry
from reconciler.lint.claims import known_to_be_missing, lint_overlaps, lint_selectors, lint_unclaimed
from reconciler.lint.template_contents import lint_definitions, lint_images, lint_makers, lint_secrets
from reconciler.lint.unused_parts import affinities_of, lint_overrides, lint_placement, lint_volumes
from reconciler.planner import urls_of_two_hosts
from reconciler.policy import Claims
from reconciler.regex import regex
from reconciler.rollouts import lay_out
from reconciler.scheduler import NO_MAKERS, Makers
from reconciler.yaml import read_yaml

_UNKNOWN: Final = "cluster-unknown"
_UNKNOWN_MAX = 20


def _all_affinities(fleet: Fleet) -> Iterator[tuple[str, ClusterAffinity]]:
    for policy in fleet.propagation:
        yield from affinities_of(policy)
        for index, weight in enumerate(policy.placement.scheduling.static_weights):
            base = "spec.placement.replicaScheduling.weightPreference.staticWeightList"
            yield f"{base}[{index}].targetCluster", weight.target
    for override in fleet.overrides:
        for index, rule in enumerate(override.rules):
            if rule.target is not None:
                yield f"spec.overrideRules[{index}].targetCluster", rule.target


def lint_clusters(fleet: Fleet) -> Iterator[Problem]:
    """Errors of a store without Fleet or Cluster documents, and warnings about cluster names in policies."""
    if not fleet.settings.name:
        yield Problem(source=fleet.settings.source, code="no-fleet", message=why_nameless(fleet))
    if not fleet.clusters and fleet.templates:
        message = "the store declares no cluster, so nothing is placed anywhere; add a Cluster document for each member"
        yield Problem(source=fleet.settings.source, code="no-clusters", message=message)
    ha = fleet.settings.ha
    if ha is not None and ha.cluster not in fleet.clusters:
        message = f"nobody can lead: {_unknown(fleet, ha.cluster)}"
        yield Problem(source=ha.source, path="spec.ha.cluster", code="lease-cluster-unknown", message=message)
    for path, affinity in _all_affinities(fleet):
        yield from _in_list(fleet, affinity.source, f"{path}.clusterNames", affinity.cluster_names)
        yield from _in_list(fleet, affinity.source, f"{path}.exclude", affinity.exclude)
        for name in sorted(set(affinity.cluster_names) & set(affinity.exclude)):
            message = f"{name} is both included and excluded, so it is excluded; keep one of the two"
            yield warning(affinity.source, path, "cluster-included-and-excluded", message)
    for policy in fleet.propagation:
        path = "spec.suspension.dispatchingOnClusters.clusterNames"
        yield from _in_list(fleet, policy.suspension_source, path, policy.suspension.clusters)


def _in_list(fleet: Fleet, source: Source, path: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, count in sorted(Counter(names).items()):
        if count > 1:
            message = f"{name} stands {count} times in one list; once is enough"
            yield warning(source, path, "cluster-repeated", message)
    unknown = sorted(set(names) - fleet.clusters.keys()) if fleet.clusters else []
    for name in unknown[:_UNKNOWN_MAX]:
        yield warning(source, path, _UNKNOWN, _unknown(fleet, name))
    if len(unknown) > _UNKNOWN_MAX:
        message = f"no Cluster document declares {len(unknown) - _UNKNOWN_MAX:,} more of the names in this list"
        yield warning(source, path, _UNKNOWN, message)


def _unknown(fleet: Fleet, name: str) -> str:
    close = difflib.get_close_matches(name, sorted(fleet.clusters), n=1)
    tip = f"did you mean {close[0]}?" if close else "add a Cluster document for it, or take the name out"
    return f"no Cluster document declares {name}; {tip}"


_NOTHING_STAGED: Final = Staging()
_OF_WHOLE_STORE: Final = frozenset({"no-fleet", "no-clusters"})


def lint(
    fleet: Fleet,
    claims: Claims,
    interpreters: Registry,
    carried: Collection[Identity] = frozenset(),
    selection: Staging = _NOTHING_STAGED,
    makers: Makers = NO_MAKERS,
) -> tuple[Problem, ...]:
    """Return the problems, each once, by file. `carried`: dependencies; `selection`: Rollouts; `makers`: of objects."""
    staged = selection.problems
    checks: tuple[tuple[str, Callable[[], Iterable[Problem]]], ...] = (
        ("clusters", lambda: lint_clusters(fleet)),
        ("selectors", lambda: lint_selectors(fleet, fleet.propagation, claims.selecting, "selector-matches-nothing")),
        ("unclaimed templates", lambda: lint_unclaimed(fleet, claims, carried)),
        ("overlaps", lambda: lint_overlaps(fleet, claims)),
        ("placements", lambda: lint_placement(fleet)),
        ("overrides", lambda: lint_overrides(fleet, claims, interpreters)),
        ("volumes", lambda: lint_volumes(fleet, claims)),
        ("images", lambda: lint_images(fleet)),
        ("definitions", lambda: lint_definitions(fleet)),
        ("rollouts", lambda: (*chain(*(lay_out(one, fleet.clusters).problems for one in fleet.rollouts)), *staged)),
        ("addresses", lambda: urls_of_two_hosts(fleet.templates.values())),
        ("secrets", lambda: lint_secrets(fleet)),
        ("what makes Secrets", lambda: lint_makers(fleet, makers)),
    )
    problems = {problem for name, check in checks for problem in _run_check(name, check)}
    return tuple(sorted(known_to_be_missing(fleet, problems)))


def errors_of_review(base: Fleet, head: Fleet) -> Iterator[Problem]:
    """Yield the errors of `head` that `validate` refuses, and names of clusters that nobody declares any more.

    One that had no fleet or cluster before needs none.
    """
    before = {(problem.code, problem.source.path, problem.message) for problem in lint_clusters(base)}
    lacking = {code for code, _, _ in before} & _OF_WHOLE_STORE
    problems = (*lint_clusters(head), *lint_images(head), *lint_definitions(head), *lint_secrets(head))
    for problem in known_to_be_missing(head, problems):
        is_new_name = problem.code == _UNKNOWN and (problem.code, problem.source.path, problem.message) not in before
        if is_new_name or (problem.severity is Severity.ERROR and problem.code not in lacking):
            yield problem


def _run_check(name: str, check: Callable[[], Iterable[Problem]]) -> Iterable[Problem]:
    problems, fault = try_call(lambda: tuple(check()))
    if fault is None:
        return problems or ()
    return (internal_error(fault, NOWHERE, f"the check of {name}", "the other checks are made"),)


PROGRAM: Final = ".reconciler"
OWNER_FILES: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")
GITLAB: Final = ".gitlab-ci.yml"
WORKFLOWS: Final = ".github/workflows"
NOT_SEEN: Final = (
    "not seen from here: protection of branches and of the branch observations, required checks, scopes of tokens"
)
_JUDGE: Final = regex(
    r"\.(?:reconciler|github|gitlab|gitea|forgejo|circleci|woodpecker|buildkite|tekton|bitbucket)(?:/.*)?|"
    r"(?:.*[/.-])?\.?gitlab-ci\.ya?ml|(?:.*/)?Jenkinsfile(?:\..*)?|azure-pipelines.*\.ya?ml|bitbucket-pipelines\.ya?ml"
    r"|\.(?:drone|woodpecker|travis|cirrus|appveyor|pre-commit-config)\.(?:ya?ml|jsonnet|star)|(?:atlantis|appveyor)\.ya?ml"
)
"""The program of the check, and definitions of jobs by their usual names, of whatever runs them."""
_JUDGES: Final = "it takes part in judging pull requests: the next ones are judged by it"
_BESIDE: Final = {
    ".gitattributes": "the forge may show differences of files collapsed, or none, by what it says",
    ".gitmodules": "other repositories are bound in: what is in them is neither read nor planned",
    ".sops.yaml": "from the next edit on sops encrypts by it: other values, or for other keys",
}
"""Files that steer neither clusters nor the check, and yet what reviewers see, by name."""


def repository_effect(path: str) -> str:
    """Return what a change of a file of the repository means, which is no document of the store; empty: nothing."""
    return _JUDGES if is_judge(path) else _BESIDE.get(path.rpartition("/")[2], "")


def is_judge(path: str) -> bool:
    """Return whether a file of a repository takes part in judging its pull requests."""
    # A link or a submodule may stand in the place of a folder.
    return path in OWNER_FILES or _JUDGE.fullmatch(path) is not None


def review_faults(files: Mapping[str, bytes]) -> list[str]:
    """Return a sentence for each gap, with the file that has it. `files`: those of `is_judge`, by path."""
    return [*_program(files), *_jobs(files), *_owners(files)]


def _program(files: Mapping[str, bytes]) -> Iterator[str]:
    names = [path.removeprefix(f"{PROGRAM}/") for path in files if path.startswith(f"{PROGRAM}/")]
    if "requirements.lock" not in names or not any(name.endswith(".whl") for name in names):
        yield f"{PROGRAM}/ has no wheel with its requirements.lock; `make wheel` makes both"
    elif b"--hash=" not in files[f"{PROGRAM}/requirements.lock"]:
        yield f"{PROGRAM}/requirements.lock has no hashes; `make wheel` writes one with them"


def _jobs(files: Mapping[str, bytes]) -> Iterator[str]:
    used = 0
    for path in sorted(files):
        if not path.startswith(f"{WORKFLOWS}/") or not path.endswith((".yml", ".yaml")):
            continue
        read = read_yaml(path, files[path])
        if read.broken:
            yield f"{path}: it cannot be read, so nothing is known of it"
        for document in read.documents:
            jobs = document.body.get("jobs")
            planning = {name: job for name, job in (jobs.items() if isinstance(jobs, dict) else ()) if _action(job)}
            used += len(planning)
            triggers = document.body.get("on", document.body.get("true"))
            if planning and "pull_request" in ([triggers] if isinstance(triggers, str) else list(triggers or ())):
                yield f"{path}: on pull_request a pull request defines its own check; run it on pull_request_target"
            for name, job in sorted(planning.items()):
                yield from (f"{path}: job {name} {fault}" for fault in _job(job))
    if not used and f"{PROGRAM}/gitlab.yml".encode() not in files.get(GITLAB, b""):
        yield f"no workflow uses {PROGRAM}/action.yml, and {GITLAB} does not include {PROGRAM}/gitlab.yml"


def _job(job: Json) -> Iterator[str]:
    action = _action(job)
    checkouts = [step.get("with") for step in _steps(job) if "actions/checkout@" in str(step.get("uses"))]
    steps = [each if isinstance(each, dict) else {} for each in checkouts]
    heads = [str(each.get("path", ".")) for each in steps if "pull" in str(each.get("ref", ""))]
    if any(head == "." or action.startswith(f"{head}/") for head in heads):
        yield f"takes {action} from the head of the pull request; check the base out beside it, and use that one"
    if any(each.get("persist-credentials") is not False for each in steps):
        yield "leaves its token in .git/config; set persist-credentials: false"
    permissions = dig(job, "permissions")
    if permissions == "write-all" or (isinstance(permissions, dict) and "write" in permissions.values()):
        yield f"plans with a token that may write; comment in a job of its own, with {PROGRAM}/comment"
    elif permissions is None:
        yield "has the permissions of the workflow; give it `permissions: {contents: read}`"


def _owners(files: Mapping[str, bytes]) -> Iterator[str]:
    content = next((files[path].decode(errors="replace") for path in OWNER_FILES if path in files), None)
    if content is None:
        yield f"no CODEOWNERS says who reviews {PROGRAM}/, {WORKFLOWS}/ and CODEOWNERS itself"
        return
    lines = [line.split() for line in content.splitlines() if line.strip() and not line.lstrip().startswith(("#", "["))]
    patterns = [words[0] for words in lines if len(words) > 1]
    for path in sorted(files):
        if not any(_covers(pattern, path) for pattern in patterns):
            yield f"{path} has no owner in CODEOWNERS"


def _covers(pattern: str, path: str) -> bool:
    """Return whether a pattern of CODEOWNERS names a path. Source: gitignore, as far as both forges have it."""
    plain = pattern.lstrip("/").rstrip("/")
    if fnmatchcase(path, plain) or path.startswith(f"{plain}/") or plain in ("*", "**"):
        return True
    return "/" not in plain and any(fnmatchcase(part, plain) for part in path.split("/"))


def _action(job: Json) -> str:
    """Return the path of our action that a job uses; empty: none."""
    used = (str(step.get("uses", "")) for step in _steps(job))
    return next((name.removeprefix("./") for name in used if name.rstrip("/").endswith(PROGRAM)), "")


def _steps(job: Json) -> list[JsonObject]:
    steps = dig(job, "steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
