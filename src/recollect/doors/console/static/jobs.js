// Shows how far jobs are while they run, and the page anew when one ends.
"use strict";

const PAUSE_MS = 1000;
const BUSY = [429, 503];

async function follow(shown) {
  const bar = shown.querySelector("progress");
  const said = shown.querySelector("[data-said]");
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS); });
    let answer;
    try {
      answer = await fetch(`/console/jobs/state?id=${encodeURIComponent(shown.dataset.job)}`);
    } catch {
      continue; // the server restarts, or the network is away for a moment
    }
    if (reloadsToSignIn(answer)) return;
    if (BUSY.includes(answer.status)) continue;
    if (!answer.ok) break;
    const job = await answer.json();
    if (job.state !== "running") break;
    if (job.total > 0) {
      bar.max = job.total;
      bar.value = job.done;
      const share = Math.floor((100 * job.done) / job.total);
      said.textContent = `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")} (${share} %)`;
    }
  }
  window.location.reload();
}

for (const shown of document.querySelectorAll("[data-job]")) follow(shown);
