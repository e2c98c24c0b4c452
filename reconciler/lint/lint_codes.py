"""Every problem code that users may meet, with its meaning and remedy. Documentation is generated from this.

A part that reports problems keeps its codes in a table beside its modules and adds the table here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.documents import ProblemCode
from reconciler.documents import ProblemCode as Code
from reconciler.fleet import PROMOTION_CODES
from reconciler.hydration import HYDRATION_CODES
from reconciler.observations import MOVE_CODES
from reconciler.policy import POLICY_CODES, WINDOW_CODES
from reconciler.render import RENDER_CODES
from reconciler.rollouts import ROLLOUT_CODES
from reconciler.secrets import SEALED_CODES

LINT_CODES: Mapping[str, Code] = {
    "never-distributed": Code(
        "The template is in a system namespace or belongs to Karmada's control API.",
        "Move it, or remove it of the store.",
    ),
    "no-clusters": Code(
        "The store declares no member, so nothing is placed.", "Add a Cluster document for each member."
    ),
    "no-fleet": Code(
        "No document of kind Fleet names the fleet: apply and run refuse the store.", "`reconciler init` writes one."
    ),
    "definition-missing": Code(
        "The store has objects of a custom kind and not its definition.",
        "Nothing, if clusters have it; `reconciler doctor` names those without.",
    ),
    "policy-group-unknown": Code(
        "A policy kind in a group without policies: nothing claims this object.",
        "Write one of the three apiVersions of policies.",
    ),
    "cluster-unknown": Code("A policy names an undeclared cluster.", "Correct the name, or declare it."),
    "lease-cluster-unknown": Code(
        "spec.ha names an undeclared cluster. Nobody can lead, and nothing is written.",
        "Correct the name, or declare the cluster.",
    ),
    "cluster-repeated": Code("A name stands twice in one list.", "Keep one of them."),
    "cluster-included-and-excluded": Code("Exclusion counts first.", "Keep the name in one of the two lists."),
    "selector-matches-nothing": Code(
        "A selector of a propagation policy selects no template of the store.",
        "Check apiVersion, kind, name, namespace and labels, which compare exactly.",
    ),
    "template-unclaimed": Code("No policy claims the template, so it goes nowhere.", "Add it to a policy."),
    "policies-overlap": Code(
        "Several policies select a template; the message says which governs it and why.",
        "Nothing, if meant; else narrow the selectors or set priority.",
    ),
    "weights-ignored": Code("The division does not use fixed weights.", "Take the list out, or change the division."),
    "weight-outside-affinity": Code("The clusters of the weight are no candidates.", "Add them to the affinity."),
    "weights-all-outside": Code(
        "No candidate has a weight, so every candidate weighs 1.", "Write weights for candidates."
    ),
    "cluster-without-weight": Code(
        "Some candidates have a weight; the others get nothing.", "Add a weight, or exclude the cluster."
    ),
    "affinity-matches-nothing": Code("No declared cluster matches.", "Check names, labels, fields and exclusions."),
    "spread-ignored": Code("Static weights take every candidate.", "Use dynamicWeight, or take them out."),
    "spread-by-label": Code(
        "A constraint by label selects nothing; alone it makes placement fail, as in Karmada.", "Use spreadByField."
    ),
    "spread-not-counted": Code(
        "A constraint on zone or provider only demands that one exists, as in Karmada.", "Use cluster or region."
    ),
    "failover-without-dependencies": Code(
        "References of the workload do not move with it. Karmada refuses this.",
        "Set propagateDeps: true, or distribute the dependencies everywhere.",
    ),
    "volumes-stay": Code(
        "A policy that moves replicas covers a StatefulSet with volume claims; its data would stay behind.",
        "Nothing, if known; a confirmed digest, or evict, moves it.",
    ),
    "override-of-everything": Code("Without selectors an override policy selects every template.", "List resources."),
    "override-without-rules": Code("Nothing is overridden.", "Add overrideRules."),
    "rule-without-overriders": Code("The rule changes nothing.", "Add overriders."),
    "override-selects-nothing": Code(
        "A selector of an override policy selects no template of the store.",
        "Check apiVersion, kind, name, namespace and labels, which compare exactly.",
    ),
    "override-targets-nothing": Code(
        "No cluster of the rule can get the selected templates.",
        "Check the rule's clusters and the propagation policy's affinity.",
    ),
    "secret-made-twice": Code(
        "The store has a Secret that an operator makes as well; they undo each other.",
        "Remove one, or let the operator only add to the Secret.",
    ),
}


_TABLES: tuple[Mapping[str, ProblemCode], ...] = (
    POLICY_CODES,
    LINT_CODES,
    RENDER_CODES,
    MOVE_CODES,
    ROLLOUT_CODES,
    WINDOW_CODES,
    SEALED_CODES,
    HYDRATION_CODES,
    PROMOTION_CODES,
)

PROBLEM_CODES: Mapping[str, ProblemCode] = MappingProxyType(
    {code: explained for table in _TABLES for code, explained in sorted(table.items())}
)
"""Code to its explanation."""
