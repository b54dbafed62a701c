// The picture of a graph: draws it when something has changed, and turns mouse, fingers and keys into what is meant.
"use strict";

class GraphCanvas {
  static THICKNESS = [0.7, 1.5, 2.6]; // by weight: below a third, below two thirds, the rest
  static STRENGTH = [0.16, 0.28, 0.45]; // the same in pictures of so many edges that all are as thin as can be
  static COLOURS = 8;
  static MANY = 1500;
  static PAUSE = 150; // milliseconds after which a moved picture is drawn with care
  static MOST_TEXTS = 150;
  static ALONG = [0.5, 0.35, 0.65]; // where the text of an edge may stand

  // `events.choose(node, together)` is called with a number or null, `events.hover(node)` likewise, `events.moved()`
  // when the layout has begun or ended to move.
  constructor(frame, canvas, model, events) {
    this.frame = frame;
    this.canvas = canvas;
    this.model = model;
    this.events = events;
    this.pen = canvas.getContext("2d");
    this.camera = { x: 0, y: 0, zoom: 1 };
    this.follows = true; // the whole graph stays in sight until somebody moves the picture
    this.movedAt = -Infinity;
    this.hovered = this.chosen = this.start = null;
    this.onPath = new Set();
    this.relation = "";
    this.least = 0;
    this.pointers = new Map();
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => this.readColours());
    new ResizeObserver(() => this.resize()).observe(frame);
    this.listen();
    this.readColours();
    this.resize();
  }

  readColours() {
    const style = getComputedStyle(this.canvas);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.ink = read("ink");
    this.quiet = read("quiet");
    this.panel = read("panel");
    this.accent = read("accent");
    this.series = Array.from({ length: GraphCanvas.COLOURS }, (_, i) => read(`series-${i + 1}`)).concat(this.quiet);
    this.request();
  }

  resize() {
    const density = Math.min(window.devicePixelRatio || 1, 3);
    this.width = this.frame.clientWidth;
    this.height = this.frame.clientHeight;
    this.canvas.width = Math.round(this.width * density);
    this.canvas.height = Math.round(this.height * density);
    this.density = density;
    if (this.follows) this.fit();
    this.request();
  }

  get hurries() {
    return !this.model.layout.still || performance.now() < this.movedAt + GraphCanvas.PAUSE;
  }

  // Somebody moves the picture: it is drawn quickly until they pause.
  touched() {
    this.follows = false;
    this.movedAt = performance.now();
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.request(), GraphCanvas.PAUSE + 10);
    this.request();
  }

  // One frame soon, however often it is asked for.
  request() {
    this.waiting ||= requestAnimationFrame(() => {
      this.waiting = 0;
      this.frameDue();
    });
  }

  frameDue() {
    const { layout } = this.model;
    const moves = !layout.still && layout.count > 0;
    if (moves && !this.calm.matches) {
      for (let steps = layout.count < GraphCanvas.MANY / 3 ? 2 : 1; steps && !layout.still; steps--) layout.step();
      if (this.follows) this.fit();
    }
    if (!moves || !this.calm.matches) this.draw();
    if (moves && !this.calm.matches) this.request();
    else if (layout.still && layout.count) this.events.moved(false);
  }

  // The nodes have changed: they move to their places, or, for who wants no motion, are found there.
  settle(heat) {
    this.model.layout.warm(heat);
    this.events.moved(true);
    if (!this.calm.matches) {
      this.request();
      return;
    }
    if (this.settling) return;
    this.settling = true;
    const slice = () => {
      const { layout } = this.model; // another one once the picture has been cleared
      for (const until = performance.now() + 12; !layout.still && performance.now() < until;) layout.step();
      if (!layout.still) {
        setTimeout(slice);
        return;
      }
      this.settling = false;
      if (this.follows) this.fit();
      this.request();
    };
    slice();
  }

  fit() {
    const { layout } = this.model;
    let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
    for (let i = 0; i < layout.count; i++) {
      left = Math.min(left, layout.x[i]); right = Math.max(right, layout.x[i]);
      top = Math.min(top, layout.y[i]); bottom = Math.max(bottom, layout.y[i]);
    }
    if (!(left <= right)) return;
    const margin = Math.min(70, this.width / 6);
    const zoom = Math.min((this.width - 2 * margin) / (right - left + 1), (this.height - 80) / (bottom - top + 1));
    this.camera = { x: (left + right) / 2, y: (top + bottom) / 2, zoom: Math.max(0.02, Math.min(zoom, 1.6)) };
    this.request();
  }

  showAll() {
    this.follows = true;
    this.fit();
  }

  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const { camera } = this;
    const zoom = Math.max(0.01, Math.min(camera.zoom * factor, 12));
    camera.x += (x - this.width / 2) * (1 / camera.zoom - 1 / zoom);
    camera.y += (y - this.height / 2) * (1 / camera.zoom - 1 / zoom);
    camera.zoom = zoom;
    this.touched();
  }

  panBy(x, y) {
    this.camera.x -= x / this.camera.zoom;
    this.camera.y -= y / this.camera.zoom;
    this.touched();
  }

  left(node) { return (this.model.layout.x[node] - this.camera.x) * this.camera.zoom + this.width / 2; }

  top(node) { return (this.model.layout.y[node] - this.camera.y) * this.camera.zoom + this.height / 2; }

  radius(node) {
    const wide = 5 + Math.min(9, 1.1 * Math.sqrt(this.model.layout.degree[node]));
    return Math.max(1.5, Math.min(wide * Math.sqrt(this.camera.zoom), 26));
  }

  // The node at a place of the picture, or null.
  at(x, y, around) {
    let found = null, nearest = Infinity;
    for (let node = 0; node < this.model.layout.count; node++) {
      const distance = Math.hypot(this.left(node) - x, this.top(node) - y);
      if (distance <= this.radius(node) + around && distance < nearest) {
        nearest = distance;
        found = node;
      }
    }
    return found;
  }

  isShown(link) {
    return link.weight >= this.least && (this.relation === "" || link.relation === this.relation);
  }

  draw() {
    const { pen } = this;
    pen.setTransform(this.density, 0, 0, this.density, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const links = this.linksInSight();
    this.drawLinks(links);
    this.drawMarkedLinks();
    this.drawNodes();
    this.taken = new Set();
    this.drawNames();
    this.drawRelations(links);
  }

  linksInSight() {
    const { width, height } = this, found = [];
    const count = this.model.layout.count, lefts = this.lefts = new Float64Array(count), tops = this.tops = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      lefts[i] = this.left(i);
      tops[i] = this.top(i);
    }
    for (const link of this.model.links) {
      const x1 = lefts[link.source], x2 = lefts[link.target], y1 = tops[link.source], y2 = tops[link.target];
      if ((x1 < 0 && x2 < 0) || (y1 < 0 && y2 < 0) || (x1 > width && x2 > width) || (y1 > height && y2 > height)) continue;
      if (this.isShown(link)) found.push(link);
    }
    return found;
  }

  // Where the line of an edge is bent to, so that several between two nodes can be told apart.
  bend(link) {
    const x1 = this.lefts[link.source], x2 = this.lefts[link.target], y1 = this.tops[link.source], y2 = this.tops[link.target];
    const turn = (link.source < link.target ? 1 : -1) * link.bend * 34 * Math.min(1.5, this.camera.zoom) / (Math.hypot(x2 - x1, y2 - y1) || 1);
    return [(x1 + x2) / 2 - (y2 - y1) * turn, (y1 + y2) / 2 + (x2 - x1) * turn];
  }

  trace(link) {
    const { pen, lefts, tops } = this, x = lefts[link.source], y = tops[link.source];
    if (link.source === link.target) {
      const size = this.radius(link.source) * (0.9 + 0.25 * Math.abs(link.bend));
      pen.moveTo(x + size, y - this.radius(link.source) - size / 2);
      pen.arc(x, y - this.radius(link.source) - size / 2, size, 0, 2 * Math.PI);
      return;
    }
    pen.moveTo(x, y);
    if (link.bend) pen.quadraticCurveTo(...this.bend(link), lefts[link.target], tops[link.target]);
    else pen.lineTo(lefts[link.target], tops[link.target]);
  }

  drawLinks(links) {
    const { pen } = this;
    pen.strokeStyle = pen.fillStyle = this.quiet;
    if (links.length > GraphCanvas.MANY) this.drawThin(links);
    else this.drawByWeight(links);
    pen.globalAlpha = 1;
  }

  // A line of one dot is drawn ten times as fast as a wider one, and best together with others.
  drawThin(links) {
    const { pen } = this;
    pen.lineWidth = 1 / this.density;
    GraphCanvas.STRENGTH.forEach((strength, level) => {
      pen.globalAlpha = strength;
      let traced = 0;
      pen.beginPath();
      for (const link of links) {
        if (link.level !== level) continue;
        this.trace(link);
        if (++traced % 200) continue;
        pen.stroke();
        pen.beginPath();
      }
      pen.stroke();
    });
  }

  drawByWeight(links) {
    const { pen } = this, scale = Math.max(0.5, Math.min(this.camera.zoom, 1.6));
    pen.globalAlpha = 0.5;
    for (const link of links) {
      pen.lineWidth = GraphCanvas.THICKNESS[link.level] * scale;
      pen.beginPath();
      this.trace(link);
      pen.stroke();
    }
    if (this.camera.zoom < 0.45) return;
    pen.beginPath();
    for (const link of links) this.traceArrow(link);
    pen.fill();
  }

  traceArrow(link) {
    if (link.source === link.target) return;
    const { pen, lefts, tops } = this, size = 4 + 2 * link.level;
    const [x, y] = link.bend ? this.bend(link) : [lefts[link.source], tops[link.source]];
    const dx = lefts[link.target] - x, dy = tops[link.target] - y, length = Math.hypot(dx, dy) || 1;
    const ux = dx / length, uy = dy / length, gap = this.radius(link.target) + 1;
    const tipX = lefts[link.target] - ux * gap, tipY = tops[link.target] - uy * gap;
    pen.moveTo(tipX, tipY);
    pen.lineTo(tipX - ux * size * 1.6 - uy * size * 0.6, tipY - uy * size * 1.6 + ux * size * 0.6);
    pen.lineTo(tipX - ux * size * 1.6 + uy * size * 0.6, tipY - uy * size * 1.6 - ux * size * 0.6);
  }

  // Edges of the node that is pointed at, and those on a path.
  drawMarkedLinks() {
    const { pen } = this, near = this.hovered ?? this.chosen;
    pen.strokeStyle = pen.fillStyle = this.accent;
    const marked = near === null ? [] : this.model.nodes[near].links.filter((link) => this.isShown(link));
    for (const [links, more] of [[marked, 0.4], [[...this.onPath], 2.4]]) {
      for (const link of links) {
        pen.lineWidth = GraphCanvas.THICKNESS[link.level] + more;
        pen.beginPath();
        this.trace(link);
        pen.stroke();
        pen.beginPath();
        this.traceArrow(link);
        pen.fill();
      }
    }
  }

  drawNodes() {
    const { pen, model, lefts, tops } = this, groups = this.series.map(() => []);
    const filtered = this.least > 0 || this.relation !== "";
    const faded = [];
    for (let node = 0; node < model.layout.count; node++) {
      if (lefts[node] < -30 || tops[node] < -30 || lefts[node] > this.width + 30 || tops[node] > this.height + 30) continue;
      if (filtered && !model.nodes[node].links.some((link) => this.isShown(link))) faded.push(node);
      else groups[model.nodes[node].colour].push(node);
    }
    pen.globalAlpha = 0.3;
    this.fillNodes(faded, this.quiet);
    pen.globalAlpha = 1;
    groups.forEach((nodes, colour) => this.fillNodes(nodes, this.series[colour]));
    const rings = [...new Set([...this.onPath].flatMap((link) => [link.source, link.target])), this.start, this.chosen, this.hovered];
    pen.strokeStyle = this.accent;
    pen.lineWidth = 2.5;
    for (const node of rings) {
      if (node === null) continue;
      pen.beginPath();
      pen.arc(lefts[node], tops[node], this.radius(node) + 3, 0, 2 * Math.PI);
      pen.stroke();
    }
  }

  fillNodes(nodes, colour) {
    const { pen, lefts, tops } = this;
    pen.fillStyle = colour;
    pen.beginPath();
    const square = this.hurries && this.model.layout.count > GraphCanvas.MANY ? 6 : 2.3;
    for (const node of nodes) {
      const radius = this.radius(node);
      if (radius < square) {
        pen.rect(lefts[node] - radius, tops[node] - radius, 2 * radius, 2 * radius);
        continue;
      }
      pen.moveTo(lefts[node] + radius, tops[node]);
      pen.arc(lefts[node], tops[node], radius, 0, 2 * Math.PI);
    }
    pen.fill();
    if (this.model.layout.count > GraphCanvas.MANY / 3) return;
    pen.strokeStyle = this.panel;
    pen.lineWidth = 1;
    pen.stroke();
  }

  drawRelations(links) {
    const { pen } = this, near = this.hovered ?? this.chosen;
    let told = links.length <= GraphCanvas.MOST_TEXTS && this.camera.zoom > 0.9 ? links : [];
    if (!told.length && this.camera.zoom > 0.5 && near !== null && this.model.nodes[near].links.length <= 40) {
      told = links.filter((link) => link.source === near || link.target === near);
    }
    pen.font = "11px system-ui, sans-serif";
    for (const link of new Set([...this.onPath, ...told])) {
      const text = `${link.told} ${link.weight.toFixed(2)}`, width = pen.measureText(text).width;
      const colour = this.onPath.has(link) ? this.ink : this.quiet;
      GraphCanvas.ALONG.some((part) => {
        const [x, y] = this.along(link, part);
        return this.write(text, x - width / 2, y, width, colour);
      });
    }
  }

  // A part of the way along the line of an edge.
  along(link, part) {
    const x = this.lefts[link.source], y = this.tops[link.source];
    if (link.source === link.target) return [x, y - 3 * this.radius(link.source)];
    const [bentX, bentY] = this.bend(link), rest = 1 - part;
    return [
      rest * rest * x + 2 * rest * part * bentX + part * part * this.lefts[link.target],
      rest * rest * y + 2 * rest * part * bentY + part * part * this.tops[link.target],
    ];
  }

  // Text on a ground of its own, to be readable on top of edges; none where another one is, or beyond the edge.
  write(text, left, y, width, colour) {
    const { pen, taken } = this, cells = [];
    if (left < 0 || left + width > this.width) return false;
    for (let row = Math.floor((y - 5) / 7); row <= (y + 5) / 7; row++) {
      for (let column = Math.floor(left / 16); column <= (left + width) / 16; column++) cells.push(row * 4096 + column);
    }
    if (cells.some((cell) => taken.has(cell))) return false;
    cells.forEach((cell) => taken.add(cell));
    pen.fillStyle = this.panel;
    pen.globalAlpha = 0.75;
    pen.fillRect(left - 2, y - 7, width + 4, 14);
    pen.globalAlpha = 1;
    pen.fillStyle = colour;
    pen.fillText(text, left, y + 4);
    return true;
  }

  // Names where there is room for them, those of busy nodes first.
  drawNames() {
    const { pen, model, lefts, tops } = this;
    const most = this.camera.zoom < 0.25 ? 25 : model.layout.still ? GraphCanvas.MOST_TEXTS : 50;
    pen.font = "12px system-ui, sans-serif";
    let written = 0;
    for (const node of new Set([this.hovered, this.chosen, this.start, ...model.busiest])) {
      if (written >= most) break;
      if (node === null || lefts[node] < 0 || tops[node] < 0 || lefts[node] > this.width || tops[node] > this.height) continue;
      const { told } = model.nodes[node], width = pen.measureText(told).width, x = lefts[node], y = tops[node];
      const away = this.radius(node) + 4;
      const places = [[x + away, y], [x - away - width, y], [x - width / 2, y - away - 5], [x - width / 2, y + away + 5]];
      if (places.some(([left, middle]) => this.write(told, left, middle, width, this.ink))) written++;
    }
  }

  listen() {
    const { frame, canvas } = this;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const from = place(event);
      this.pointers.set(event.pointerId, from);
      const node = this.pointers.size === 1 ? this.at(from.x, from.y, event.pointerType === "touch" ? 12 : 4) : null;
      this.grip = { node, from, moved: this.pointers.size > 1 };
    });
    canvas.addEventListener("pointermove", (event) => {
      const to = place(event), from = this.pointers.get(event.pointerId);
      if (!from) this.hover(this.at(to.x, to.y, 4));
      else if (this.pointers.size === 2) this.pinch(event.pointerId, to);
      else if (this.pointers.size === 1) this.drag(from, to);
      if (from && (this.grip.moved || this.pointers.size > 1)) this.pointers.set(event.pointerId, to);
    });
    const release = (event) => {
      if (!this.pointers.delete(event.pointerId) || this.pointers.size) return;
      if (event.type === "pointerup" && !this.grip.moved) this.events.choose(this.grip.node, event.shiftKey);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.hover(null));
    // Else the wheel, like one finger that moves up or down, scrolls the page past the picture.
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== frame) return;
      event.preventDefault();
      const { x, y } = place(event), lines = event.deltaMode === 1 ? 16 : 1;
      this.zoomBy(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0015)), x, y);
    }, { passive: false });
    const keys = {
      "+": () => this.zoomBy(1.25), "=": () => this.zoomBy(1.25), "-": () => this.zoomBy(0.8),
      0: () => this.showAll(), Escape: () => this.events.choose(null, false),
      ArrowLeft: () => this.panBy(60, 0), ArrowRight: () => this.panBy(-60, 0),
      ArrowUp: () => this.panBy(0, 60), ArrowDown: () => this.panBy(0, -60),
    };
    frame.addEventListener("keydown", (event) => {
      if (event.target !== frame || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.canvas.classList.toggle("on-node", node !== null);
    this.events.hover(node);
    this.request();
  }

  drag(from, to) {
    const { grip } = this, { layout } = this.model;
    if (!grip.moved && Math.hypot(to.x - from.x, to.y - from.y) < 5) return;
    grip.moved = true;
    if (grip.node === null) {
      this.panBy(to.x - from.x, to.y - from.y);
      return;
    }
    this.follows = false;
    layout.held[grip.node] = 1; // and it stays where somebody put it
    layout.x[grip.node] = (to.x - this.width / 2) / this.camera.zoom + this.camera.x;
    layout.y[grip.node] = (to.y - this.height / 2) / this.camera.zoom + this.camera.y;
    if (this.calm.matches) this.request();
    else this.settle(0.25);
  }

  pinch(moved, to) {
    const from = this.pointers.get(moved);
    const [[, other]] = [...this.pointers].filter(([pointer]) => pointer !== moved);
    const before = Math.hypot(from.x - other.x, from.y - other.y), after = Math.hypot(to.x - other.x, to.y - other.y);
    this.zoomBy(after / (before || 1), (to.x + other.x) / 2, (to.y + other.y) / 2);
    this.panBy((to.x - from.x) / 2, (to.y - from.y) / 2);
  }
}
