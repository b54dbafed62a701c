"""Every agent test is watched for leaked credentials."""

from tests.agent.leaks import no_credential_is_shown, pytest_runtest_makereport

__all__ = ["no_credential_is_shown", "pytest_runtest_makereport"]
