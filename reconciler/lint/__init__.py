"""Hints about what is legal in a store and surely not meant, and the effects of settings that change."""

from reconciler.lint.effects import Looser
from reconciler.lint.held_settings import (
    REVIEW_ERRORS,
    HeldDifference,
    confirmation_of,
    content_changes,
    held_difference,
    held_settings,
    steering_files,
    with_confirmation,
)
from reconciler.lint.lint_store import NOT_SEEN, is_judge, lint, repository_effect, review_faults
from reconciler.lint.policy_effects import EFFECTS
from reconciler.lint.settings_diff import setting_changes, settings_digest
