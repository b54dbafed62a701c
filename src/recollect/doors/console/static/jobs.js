// Shows how far jobs are while they run. In a list, a job that ends changes its row alone, since somebody may be filling
// in a form below; the page of one job is shown anew.
"use strict";

const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30000;
const GOING_ON = ["running", "stopping"];
const BADGES = { done: "good", failed: "bad", lost: "bad" };

// The sentence on the page of a refusal.
async function fault(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector(".fault")?.textContent || "Reload the page.";
}

// What a server says of a job; null if it does not answer, or not now.
async function asked(id) {
  try {
    const answer = await fetch(`/console/jobs/state?${ofThisNamespace({ id })}`);
    if (reloadsToSignIn(answer) || answer.status === 404) return { state: "gone" };
    if (answer.status === 409) return { state: "elsewhere", problem: await fault(answer) };
    return answer.ok ? await answer.json() : null;
  } catch {
    return null; // the server restarts, or the network is away for a moment
  }
}

function said(job) {
  if (job.state === "stopping") return "stopping";
  if (job.total === 0) return job.done === 0 ? "begun" : `${job.done.toLocaleString("en")} so far`;
  const share = Math.floor((100 * job.done) / job.total);
  return `${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")} (${share} %)`;
}

function tell(shown, job) {
  const bar = shown.querySelector("progress");
  if (job.total > 0) {
    bar.max = job.total;
    bar.value = job.done;
  }
  shown.querySelector("[data-said]").textContent = said(job);
}

function end(shown, job) {
  if (shown.closest("[data-reload]")) {
    window.location.reload();
    return;
  }
  const badge = document.createElement("span");
  badge.className = `badge ${BADGES[job.state] || "warn"}`;
  badge.textContent = job.state;
  shown.replaceChildren(badge);
}

async function follow(shown) {
  let pause = PAUSE_MS;
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    const job = await asked(shown.dataset.job);
    if (job === null) {
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    } else if (job.state === "elsewhere") {
      shown.querySelector("[data-said]").textContent = job.problem;
      return;
    } else if (!GOING_ON.includes(job.state)) {
      if (job.state !== "gone") end(shown, job);
      return;
    } else {
      pause = PAUSE_MS;
      tell(shown, job);
    }
  }
}

for (const shown of document.querySelectorAll("[data-job]")) follow(shown);
