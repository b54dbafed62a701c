// What every page may use: buttons that copy, and what scripts that ask the server share.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

// On the document: scripts put other buttons and forms into a page later.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // Without TLS, or without permission, a browser lets only the user copy: the text is selected for it.
    window.getSelection().selectAllChildren(source);
    return;
  }
  button.dataset.label ||= button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
});

// What a script asks for, with the namespace that its page shows: by now the browser may be signed in to another one.
function ofThisNamespace(query) {
  const asked = new URLSearchParams(query);
  asked.set("of_namespace", document.documentElement.dataset.namespace);
  return asked;
}

// Opens the page anew if an answer is the form to sign in, which leads there and back; returns whether it did.
function reloadsToSignIn(answer) {
  if (answer.redirected) window.location.reload();
  return answer.redirected;
}
