"""Property tests are the same on every run and have no deadline: two shared cores stall now and then."""

from hypothesis import HealthCheck, settings

settings.register_profile("brownout", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("brownout")
