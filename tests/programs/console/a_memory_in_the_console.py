"""The console of a server as a browser sees it: reads pages, stores a memory by a form, finds it again."""

import re

import httpx

with httpx.Client(base_url="http://127.0.0.1:8000", timeout=60, follow_redirects=True) as browser:
    page = browser.get("/console/memories").text
    token = re.search('name="csrf" value="([0-9a-f]+)"', page)
    assert token is not None
    memory = {"csrf": token[1], "text": "The harbour closes at nine.", "user": "a-browser", "category": "fact"}
    stored = browser.post("/console/memories", data=memory)
    assert stored.status_code == 200, stored.text
    found = browser.get("/console/recall", params={"query": "When does the harbour close?", "user_id": "a-browser"})
    assert "The harbour closes at nine." in re.sub("</?mark>", "", found.text)
