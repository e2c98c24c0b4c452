"""What clusters tell about their nodes, pods and workloads."""
