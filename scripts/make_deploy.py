"""Write the manifests that are made from other files; with --check, say which of them are out of date.

kustomize cannot put a file into a field of an object, and reads no file outside of its folder.

Usage: python scripts/make_deploy.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALERTS = ROOT / "monitoring/alerts.yaml"
RULE = ROOT / "deploy/kubernetes/components/monitoring/prometheusrule.yaml"
HEAD = """\
# Made by scripts/make_deploy.py from monitoring/alerts.yaml. Do not edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: fleet-reconciler
  namespace: fleet-reconciler
  labels: {app.kubernetes.io/name: fleet-reconciler}
spec:
"""


def prometheus_rule() -> str:
    """The alerts as an object of the Prometheus operator."""
    lines = ALERTS.read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    return HEAD + "".join(f"  {line}\n" if line else "\n" for line in rules)


def main() -> int:
    """Exit code 1 when a file is out of date and only looked at."""
    made = prometheus_rule()
    is_fresh = RULE.exists() and RULE.read_text(encoding="utf-8") == made
    if "--check" in sys.argv[1:]:
        if not is_fresh:
            sys.stdout.write(f"out of date: {RULE.relative_to(ROOT)}; run python scripts/make_deploy.py\n")
        return 0 if is_fresh else 1
    RULE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
