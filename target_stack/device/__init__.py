"""A simulated GPU as its operators see it: registers, physics, NVML's terms, Xid log, and conditions that harm it."""
