// The page of the graph: what is in the picture, how it grows, and the same for keyboards and screen readers.
"use strict";

// Nodes and edges in the picture, with their places.
class GraphModel {
  constructor(most) {
    this.most = most;
    this.empty();
  }

  empty() {
    this.layout = new ForceLayout();
    this.nodes = [];
    this.links = [];
    this.numbers = new Map(); // of nodes, by id
    this.keys = new Map(); // edges by their ends and relation
    this.pairs = new Map(); // edges between the same two nodes
    this.labels = new Map(); // of a label: its colour, and how many nodes have it
    this.busiest = [];
  }

  // Adds what is not there yet; returns how much that was. New nodes begin beside one that they are connected with.
  add(part) {
    const before = { nodes: this.nodes.length, links: this.links.length };
    const fresh = part.nodes.filter(([id]) => !this.numbers.has(String(id))).slice(0, this.most - this.nodes.length);
    const beside = this.neighbours(part.links);
    const waiting = new Map(fresh.map((node) => [String(node[0]), node]));
    const placed = [...this.numbers.keys()].filter((id) => beside.has(id));
    const children = new Map();
    const place = (id, parent) => {
      const [, name, label] = waiting.get(id);
      waiting.delete(id);
      const turn = (children.get(parent) || 0) + 1;
      children.set(parent, turn);
      const angle = 2.399963 * turn + (parent || 0), far = ForceLayout.LENGTH * this.layout.scale * Math.sqrt(0.6 + turn / 6);
      const x = parent === null ? 0 : this.layout.x[parent], y = parent === null ? 0 : this.layout.y[parent];
      this.addNode(id, name, part.labels[label], x + Math.cos(angle) * far, y + Math.sin(angle) * far);
      placed.push(id);
    };
    for (let next = 0; waiting.size; next++) {
      if (next === placed.length) place(waiting.keys().next().value, null);
      for (const id of beside.get(placed[next]) || []) if (waiting.has(id)) place(id, this.numbers.get(placed[next]));
    }
    for (const [source, target, relation, weight] of part.links) {
      this.addLink(String(source), String(target), part.relations[relation], weight);
    }
    this.busiest = this.nodes.map((_, i) => i).sort((a, b) => this.layout.degree[b] - this.layout.degree[a] || a - b);
    return { nodes: this.nodes.length - before.nodes, links: this.links.length - before.links };
  }

  neighbours(links) {
    const found = new Map();
    const note = (id, other) => {
      if (!found.has(id)) found.set(id, []);
      found.get(id).push(other);
    };
    for (const [source, target] of links) {
      note(String(source), String(target));
      note(String(target), String(source));
    }
    return found;
  }

  addNode(id, name, label, x, y) {
    if (!this.labels.has(label)) this.labels.set(label, { colour: Math.min(this.labels.size, GraphCanvas.COLOURS), count: 0 });
    const known = this.labels.get(label);
    known.count++;
    this.numbers.set(id, this.layout.add(x, y));
    this.nodes.push({ id, name, label, told: brief(name, 34), colour: known.colour, links: [], grown: false });
  }

  addLink(from, to, relation, weight) {
    const source = this.numbers.get(from), target = this.numbers.get(to), key = JSON.stringify([from, to, relation]);
    if (source === undefined || target === undefined || this.keys.has(key)) return;
    const level = weight < 1 / 3 ? 0 : weight < 2 / 3 ? 1 : 2;
    const link = { source, target, relation, weight, level, told: brief(relation, 24), bend: 0 };
    this.keys.set(key, link);
    this.links.push(link);
    this.nodes[source].links.push(link);
    if (source !== target) this.nodes[target].links.push(link);
    this.layout.connect(source, target);
    const pair = source < target ? `${source} ${target}` : `${target} ${source}`;
    if (!this.pairs.has(pair)) this.pairs.set(pair, []);
    const beside = this.pairs.get(pair);
    beside.push(link);
    beside.forEach((each, i) => { each.bend = i - (beside.length - 1) / 2; });
  }

  link(from, to, relation) {
    return this.keys.get(JSON.stringify([from, to, relation]));
  }
}

// As the server shows stored text: what is invisible or would turn a line around is written out.
const INVISIBLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\u200c\u200d](?:(?<![\u0600-\u06ff\u0750-\u077f\u08a0-\u0dff\u1000-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\ufe0f\u{1f000}-\u{1faff}].)|(?![\u0600-\u06ff\u0750-\u077f\u08a0-\u0dff\u1000-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\ufe0f\u{1f000}-\u{1faff}]))|[\ufe00-\ufe0f](?<![\xa9\xae\u1000-\u109f\u203c\u2049\u2100-\u27ff\u2900-\u2bff\u3001-\u303d\u3297\u3299\u3400-\u9fff\uff01-\uff60\u{1f000}-\u{1faff}].)(?!\u20e3)/gu;

function visible(text) {
  return text.replace(INVISIBLE, (each) => `[U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

function brief(text, most) {
  const letters = [...visible(text.replace(/\s+/g, " ").trim())];
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
}

function counted(number, thing) {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

// Ids as one address can have them.
function parts(ids) {
  const found = [];
  for (const id of ids) {
    const last = found.at(-1);
    if (!last || last.length === GraphPage.AT_ONCE || last.letters + id.length > GraphPage.MOST_LETTERS) found.push(Object.assign([id], { letters: id.length }));
    else {
      last.push(id);
      last.letters += id.length + 1;
    }
  }
  return found.map((some) => some.join("."));
}

class GraphPage {
  static LISTED = 100;
  static AT_ONCE = 250; // ids in one address, twice
  static MOST_LETTERS = 3500; // of as many ids: proxies refuse an address of more than 8 kB

  constructor(section) {
    this.section = section;
    this.told = document.getElementById("graph-told");
    this.asOf = section.dataset.asOf;
    this.model = new GraphModel(Number(section.dataset.most));
    section.hidden = false;
    this.canvas = new GraphCanvas(document.getElementById("graph-frame"), document.getElementById("graph-canvas"), this.model, {
      choose: (node, together) => this.choose(node, together),
      hover: (node) => this.hover(node),
      moved: (moves) => { section.dataset.layout = moves ? "moving" : "still"; },
    });
    this.listen();
  }

  on(id, kind, act) {
    document.getElementById(id).addEventListener(kind, act);
  }

  listen() {
    this.on("graph-closer", "click", () => this.canvas.zoomBy(1.4));
    this.on("graph-farther", "click", () => this.canvas.zoomBy(1 / 1.4));
    this.on("graph-all", "click", () => this.canvas.showAll());
    this.on("graph-load", "click", () => this.load());
    this.on("graph-clear", "click", () => this.clear());
    this.on("graph-from", "click", () => this.startPath(this.canvas.start === null ? this.canvas.chosen : null));
    this.on("graph-search", "input", () => this.list());
    this.on("graph-relation", "change", (event) => this.filter({ relation: event.target.value }));
    this.on("graph-weight", "input", (event) => this.filter({ least: Number(event.target.value) }));
    const list = document.getElementById("graph-nodes");
    const number = (event) => {
      const button = event.target.closest("button");
      return button ? this.model.numbers.get(button.dataset.id) : null;
    };
    list.addEventListener("click", (event) => { if (number(event) !== null) this.choose(number(event), event.shiftKey); });
    list.addEventListener("focusin", (event) => this.canvas.hover(number(event)));
    list.addEventListener("focusout", () => this.canvas.hover(null));
    for (const part of ["node", "paths"]) {
      this.on(part, "click", (event) => {
        const link = event.target.closest("a[data-node]");
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        this.open(link.dataset.node);
      });
    }
    this.on("path-form", "submit", (event) => {
      event.preventDefault();
      const given = new FormData(event.target);
      this.path(given.get("from"), given.get("to"), given.get("steps"));
    });
  }

  // What the server answers; a refusal is told, and null is returned.
  async ask(path, asked) {
    const query = new URLSearchParams({ ...asked, ...(this.asOf && { as_of: this.asOf }) });
    this.section.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`/console/graph/${path}?${ofThisNamespace(query)}`);
      if (reloadsToSignIn(answer)) return null;
      if (answer.ok) return answer;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      this.tell(page.querySelector(".fault")?.textContent || "The server could not answer");
    } catch (problem) {
      if (!(problem instanceof TypeError)) throw problem;
      this.tell("The server cannot be reached");
    } finally {
      this.section.removeAttribute("aria-busy");
    }
    return null;
  }

  tell(sentence) {
    this.told.textContent = sentence;
  }

  // What the server added, unless somebody is asked for the end of a path by now.
  tellGrown(sentence) {
    if (this.canvas.start === null) this.tell(sentence);
  }

  async begin() {
    const { node, from, to, steps } = this.section.dataset;
    if (from && to) await this.path(from, to, steps);
    else if (node) await this.open(node, false);
    else await this.load();
  }

  // A part of the graph is added, then the edges between what is new and what was there.
  async grow(asked) {
    const { layout } = this.model;
    const answer = await this.ask("around", asked);
    const part = answer && await answer.json();
    if (!part || layout !== this.model.layout) return null; // or the picture was cleared meanwhile
    const known = new Set(this.model.numbers.keys());
    const added = this.model.add(part);
    const inPart = new Set(part.nodes.map(([id]) => String(id)));
    const others = [...known].filter((id) => !inPart.has(id));
    const fresh = [...inPart].filter((id) => !known.has(id) && this.model.numbers.has(id));
    const between = await this.connect(fresh, others);
    if (layout !== this.model.layout) return null;
    added.links += between.links;
    const full = this.model.nodes.length >= this.model.most ? ` The picture is full with ${counted(this.model.most, "node")}.` : "";
    const rest = part.total === null ? " The graph has more: these are the busiest."
      : ` ${counted(part.total - 1, "neighbour")} lie there: these are the nearest and strongest.`;
    const capped = part.truncated ? rest : "";
    const missing = between.problem && ` Relations with what was there are missing: ${between.problem}`;
    this.changed(added.nodes > 50 ? 1 : 0.6);
    return { part, told: `${counted(added.nodes, "node")} and ${counted(added.links, "relation")} added.${capped}${full}${missing}` };
  }

  // Ends with the first answer that does not come: the next ones would not, either.
  async connect(ids, others) {
    const { layout } = this.model, found = { links: 0, problem: "" };
    for (const some of parts(ids)) {
      for (const beside of parts(others)) {
        const answer = await this.ask("between", { ids: some, others: beside });
        if (layout !== this.model.layout) return found;
        if (!answer) return { ...found, problem: this.told.textContent };
        found.links += this.model.add(await answer.json()).links;
      }
    }
    return found;
  }

  // A node that may not be in the picture yet.
  async open(id, withDetails = true) {
    if (!this.model.numbers.has(id)) {
      const grown = await this.grow({ node: id });
      if (!grown) return;
      this.tellGrown(grown.told);
      if (!this.model.numbers.has(id)) return;
      this.model.nodes[this.model.numbers.get(id)].grown = true;
    }
    await this.choose(this.model.numbers.get(id), false, withDetails);
  }

  // A node is chosen: what is known of it is shown, and its neighbours grow out of it.
  async choose(node, together, withDetails = true) {
    const { canvas, model } = this;
    const start = canvas.start ?? (together ? canvas.chosen : null);
    if (node !== null && start !== null && start !== node) {
      this.startPath(null);
      await this.path(model.nodes[start].name, model.nodes[node].name);
      return;
    }
    canvas.chosen = node;
    canvas.onPath = new Set();
    canvas.request();
    this.list();
    this.showChosen();
    if (node === null) return;
    const { id, name, grown } = model.nodes[node];
    if (withDetails) this.details(id);
    if (grown) return;
    model.nodes[node].grown = true;
    const more = await this.grow({ node: id });
    if (more) this.tellGrown(`${brief(name, 60)}: ${more.told}`);
  }

  async details(id) {
    history.replaceState(null, "", `/console/graph?${new URLSearchParams({ node: id, ...(this.asOf && { as_of: this.asOf }) })}`);
    const answer = await this.ask("node", { node: id });
    const html = answer && await answer.text();
    const { chosen } = this.canvas; // perhaps another one by now
    if (html && chosen !== null && this.model.nodes[chosen].id === id) this.put("node", html);
  }

  // A part of a page as the server wrote it.
  put(place, html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const section = document.getElementById(place);
    section.hidden = false;
    section.replaceChildren(...page.body.childNodes);
  }

  startPath(node) {
    this.canvas.start = node;
    this.canvas.request();
    this.showChosen();
    if (node !== null) this.tell(`A path from ${this.model.nodes[node].told}: choose the node where it ends`);
  }

  async path(from, to, steps = "") {
    const answer = await this.ask("path", { from, to, ...(steps && { steps }) });
    if (!answer) return;
    const found = await answer.json();
    this.put("paths", found.html);
    if (!found.nodes.length) {
      this.tell(document.querySelector("#paths .outcome").textContent);
      return;
    }
    this.model.add(found);
    this.canvas.onPath = new Set();
    for (const [source, target, relation] of found.links) {
      this.canvas.onPath.add(this.model.link(String(source), String(target), found.relations[relation]));
    }
    this.canvas.onPath.delete(undefined);
    this.canvas.chosen = null;
    this.changed(0.6);
    this.tell(document.querySelector("#paths .outcome").textContent);
  }

  async load() {
    const depth = document.getElementById("graph-depth").value, limit = document.getElementById("graph-limit").value;
    const { chosen } = this.canvas;
    const asked = chosen === null ? { limit } : { node: this.model.nodes[chosen].id, depth, limit };
    const more = await this.grow(asked);
    if (more) this.tellGrown(more.told);
  }

  clear() {
    const { chosen } = this.canvas, id = chosen === null ? null : this.model.nodes[chosen].id;
    this.model.empty();
    Object.assign(this.canvas, { chosen: null, hovered: null, start: null, onPath: new Set(), follows: true });
    this.changed(1);
    this.tell("The picture is empty. Choose a node from the list, or load some.");
    if (id !== null) this.open(id);
  }

  filter(wanted) {
    Object.assign(this.canvas, wanted);
    document.getElementById("graph-weight-told").textContent = this.canvas.least.toFixed(2);
    this.canvas.request();
  }

  changed(heat) {
    this.canvas.settle(heat);
    this.list();
    this.legend();
    this.relations();
    this.showChosen();
    this.section.dataset.nodes = this.model.nodes.length;
    this.section.dataset.links = this.model.links.length;
    document.getElementById("graph-size").textContent =
      `${counted(this.model.nodes.length, "node")}, ${counted(this.model.links.length, "relation")}`;
  }

  hover(node) {
    const shown = node === null ? null : this.model.nodes[node];
    document.getElementById("graph-hover").textContent = shown
      ? `${shown.told} · ${brief(shown.label, 30)} · ${counted(shown.links.length, "relation")} in the picture` : "";
  }

  showChosen() {
    const { chosen, start } = this.canvas, button = document.getElementById("graph-from");
    const load = document.getElementById("graph-load");
    button.hidden = chosen === null && start === null;
    button.setAttribute("aria-pressed", String(start !== null));
    load.textContent = chosen === null ? "Load the busiest nodes" : `Load around ${brief(this.model.nodes[chosen].name, 20)}`;
    document.getElementById("graph-depth").disabled = chosen === null;
  }

  // The nodes as buttons: the chosen one first, then those with most edges.
  list() {
    const wanted = document.getElementById("graph-search").value.trim().toLowerCase();
    const { chosen } = this.canvas, list = document.getElementById("graph-nodes");
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const order = chosen === null ? this.model.busiest : [chosen, ...this.model.busiest.filter((node) => node !== chosen)];
    const fitting = order.filter((node) => !wanted || this.model.nodes[node].name.toLowerCase().includes(wanted));
    const items = fitting.slice(0, GraphPage.LISTED).map((node) => this.item(node, node === chosen));
    if (fitting.length > items.length) {
      const more = document.createElement("li");
      more.className = "quiet";
      more.textContent = `and ${(fitting.length - items.length).toLocaleString("en")} more: type to find one`;
      items.push(more);
    }
    list.replaceChildren(...items);
    if (focused !== null) list.querySelector(`[data-id="${focused}"]`)?.focus();
  }

  item(node, chosen) {
    const item = document.createElement("li"), button = document.createElement("button"), label = document.createElement("span");
    const shown = this.model.nodes[node];
    button.type = "button";
    button.className = "plain text";
    button.dataset.id = shown.id;
    button.setAttribute("aria-pressed", String(chosen));
    label.className = "quiet";
    label.textContent = ` ${brief(shown.label, 24)}`;
    button.append(shown.told, label);
    item.append(button);
    return item;
  }

  legend() {
    const items = [];
    let others = 0;
    const row = (colour, text) => {
      const item = document.createElement("li"), words = document.createElement("span");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      svg.setAttribute("viewBox", "0 0 10 10");
      svg.setAttribute("aria-hidden", "true");
      for (const [name, value] of [["cx", 5], ["cy", 5], ["r", 5], ["class", colour < GraphCanvas.COLOURS ? `s${colour + 1}` : "other"]]) dot.setAttribute(name, value);
      words.className = "text";
      words.textContent = text;
      svg.append(dot);
      item.append(svg, words);
      items.push(item);
    };
    for (const [label, { colour, count }] of this.model.labels) {
      if (colour < GraphCanvas.COLOURS) row(colour, `${brief(label, 24)} (${count.toLocaleString("en")})`);
      else others += count;
    }
    if (others) row(GraphCanvas.COLOURS, `other labels (${others.toLocaleString("en")})`);
    document.getElementById("graph-legend").replaceChildren(...items);
  }

  relations() {
    const counts = new Map();
    for (const { relation } of this.model.links) counts.set(relation, (counts.get(relation) || 0) + 1);
    const select = document.getElementById("graph-relation"), all = new Option("all", "");
    const sorted = [...counts].sort(([, a], [, b]) => b - a).slice(0, 200);
    select.replaceChildren(all, ...sorted.map(([name, count]) => new Option(`${brief(name, 40)} (${count})`, name)));
    select.value = counts.has(this.canvas.relation) ? this.canvas.relation : "";
    this.canvas.relation = select.value;
  }
}

const graphPicture = document.getElementById("picture");
const graphPage = graphPicture && new GraphPage(graphPicture);
if (graphPage) graphPage.begin();
