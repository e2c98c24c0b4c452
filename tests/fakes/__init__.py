"""Stand-ins for what the reconciler talks to, and worlds that tests begin with: one file a purpose."""
