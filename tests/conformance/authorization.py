"""The scenarios of the conformance suite for authorization servers, against `recollect serve` with a public address.

The suite prints an address and waits for a person; here one opens it, types a key and allows what is asked for.
"""

import os
import re
import socket
import subprocess
from pathlib import Path

import httpx

from tests.conformance.__main__ import BIN, SUITE, plain, serving, summary
from tests.oauth_clients import form_of

REVISIONS = ("2026-07-28", "2025-11-25")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def authorizes(home: Path) -> bool:
    """Whether the scenarios of every revision pass."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(BIN / "recollect"), "serve", "--port", url.rpartition(":")[2]]
    with serving(command, home, RECOLLECT_PUBLIC_URL=url):
        environment = os.environ | {"RECOLLECT_DATA_DIR": str(home)}
        make_key = [str(BIN / "recollect"), "keys", "create", "--role", "write"]
        key = subprocess.run(make_key, capture_output=True, text=True, check=True, env=environment).stdout.strip()
        return all(passes(url, revision, key) for revision in REVISIONS)


def passes(url: str, revision: str, key: str) -> bool:
    """Register as the suite wants it, run its scenarios, and be the person whom they wait for."""
    print(f"\n== {revision}, the authorization server ==", flush=True)
    port = free_port()
    metadata = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"], "token_endpoint_auth_method": "none"}
    client = httpx.post(f"{url}/register", json=metadata).raise_for_status().json()["client_id"]
    command = [str(BIN / "node"), str(SUITE), "authorization", "--url", url, "--client-id", client]
    command += ["--resource", f"{url}/mcp", "--port", str(port), "--spec-version", revision]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
        assert suite.stdout is not None
        for line in suite.stdout:
            said.append(plain(line))
            if found := re.search(rf"{url}/authorize\?\S+", said[-1]):
                allow(found[0], key)
    print("".join(said) if suite.returncode else summary("".join(said)), flush=True)
    return suite.returncode == 0


def allow(address: str, key: str) -> None:
    """Type the key, allow it, and follow the way back."""
    with httpx.Client(follow_redirects=True) as browser:
        choice = form_of(browser.get(address)) | {"key": key, "role": "write", "decision": "allow"}
        browser.post(address.partition("?")[0], data=choice).raise_for_status()
