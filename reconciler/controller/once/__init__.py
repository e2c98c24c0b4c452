"""Commands that run once: look, plan, apply, rebuild."""

from reconciler.controller.once.planning import Access, observe_once, plan_once
