"""Commands that run once: look, plan, apply, rebuild."""

from reconciler.controller.once.planning import Access, plan_once
