"""Promotions: what one environment's folder takes over from another's, field by field. Runs nothing."""

from reconciler.promotion.promoted_fields import DocumentPair, Promoted, is_downgrade, promoted
from reconciler.promotion.promotion_review import HealthWords, conflicts, promotion_changes
