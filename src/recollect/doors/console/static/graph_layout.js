// Where the nodes of a graph stand: nodes repel each other, edges pull, and the whole cools down until it is still.
"use strict";

// Far nodes are summed up in the cells of a quadtree (Barnes and Hut), so a step costs n log n and not n squared.
class ForceLayout {
  static REPULSION = 60;
  static LENGTH = 46; // of an edge in a large graph
  static GRAVITY = 0.03;
  static FRICTION = 0.62;
  static NEARNESS = 0.81; // the square of a cell's size by its distance, above which it is looked into
  static DEEPEST = 40;
  static STILL = 0.004;

  constructor() {
    this.count = 0;
    this.heat = 0;
    this.edges = [];
    this.grow(256);
  }

  grow(size) {
    for (const name of ["x", "y", "vx", "vy"]) {
      const wider = new Float64Array(size);
      if (this[name]) wider.set(this[name]);
      this[name] = wider;
    }
    for (const name of ["held", "degree"]) {
      const wider = new Int32Array(size);
      if (this[name]) wider.set(this[name]);
      this[name] = wider;
    }
    this.following = new Int32Array(size); // of several nodes in one place
  }

  // A node at a place; returns its number.
  add(x, y) {
    if (this.count === this.x.length) this.grow(this.count * 2);
    const node = this.count++;
    this.x[node] = x;
    this.y[node] = y;
    this.vx[node] = this.vy[node] = this.held[node] = this.degree[node] = 0;
    return node;
  }

  connect(source, target) {
    if (source === target) return;
    this.edges.push(source, target);
    this.degree[source]++;
    this.degree[target]++;
  }

  get still() {
    return this.heat < ForceLayout.STILL;
  }

  // Large graphs cool faster: each of their steps takes longer.
  get cooling() {
    return this.count > 1500 ? 0.03 : 0.024;
  }

  // Small graphs have room for the names of their nodes and edges.
  get scale() {
    return 1 + 1.6 * Math.max(0, 1 - this.count / 300);
  }

  warm(heat) {
    this.heat = Math.max(this.heat, heat);
  }

  step() {
    this.heat -= this.heat * this.cooling;
    this.pull();
    this.plant();
    this.repel();
    this.move();
  }

  pull() {
    const { x, y, vx, vy, degree, edges, heat } = this, length = ForceLayout.LENGTH * this.scale;
    for (let i = 0; i < edges.length; i += 2) {
      const source = edges[i], target = edges[i + 1];
      const dx = x[target] + vx[target] - x[source] - vx[source] || 1e-3;
      const dy = y[target] + vy[target] - y[source] - vy[source] || 1e-3;
      const distance = Math.sqrt(dx * dx + dy * dy);
      const strength = heat * (distance - length) / distance / Math.min(degree[source], degree[target]);
      const share = degree[source] / (degree[source] + degree[target]); // the busier end moves less
      vx[target] -= dx * strength * share;
      vy[target] -= dy * strength * share;
      vx[source] += dx * strength * (1 - share);
      vy[source] += dy * strength * (1 - share);
    }
  }

  // Builds the tree. Cell c has children 4c to 4c + 3: 0 is none, n > 0 is cell n, n < 0 is node -n - 1.
  plant() {
    const { x, y, count } = this;
    let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
    for (let i = 0; i < count; i++) {
      left = Math.min(left, x[i]); right = Math.max(right, x[i]);
      top = Math.min(top, y[i]); bottom = Math.max(bottom, y[i]);
    }
    this.left = left;
    this.top = top;
    this.width = Math.max(right - left, bottom - top, 1) * 1.0001;
    this.following.fill(-1, 0, count);
    this.cells = 1;
    if (!this.children) this.reserve(4 * count + 64);
    this.children.fill(0, 0, 4);
    for (let i = 0; i < count; i++) this.insert(i);
    if (count) this.weigh(0);
  }

  reserve(cells) {
    const children = new Int32Array(4 * cells);
    if (this.children) children.set(this.children);
    this.children = children;
    this.mass = new Float64Array(cells);
    this.cx = new Float64Array(cells);
    this.cy = new Float64Array(cells);
  }

  insert(node) {
    const { x, y, following } = this;
    let cell = 0, left = this.left, top = this.top, half = this.width / 2;
    for (let depth = 0; ; depth++) {
      const east = x[node] >= left + half ? 1 : 0, south = y[node] >= top + half ? 1 : 0;
      const slot = 4 * cell + east + 2 * south;
      const there = this.children[slot];
      left += east * half;
      top += south * half;
      half /= 2;
      if (there === 0) {
        this.children[slot] = -node - 1;
        return;
      }
      if (there > 0) {
        cell = there;
        continue;
      }
      const other = -there - 1;
      if (depth > ForceLayout.DEEPEST || (x[other] === x[node] && y[other] === y[node])) {
        following[node] = following[other];
        following[other] = node;
        return;
      }
      const fresh = this.cells++;
      if (4 * fresh + 4 > this.children.length) this.reserve(2 * fresh);
      this.children.fill(0, 4 * fresh, 4 * fresh + 4);
      this.children[slot] = fresh;
      this.children[4 * fresh + (x[other] >= left + half ? 1 : 0) + (y[other] >= top + half ? 2 : 0)] = there;
      cell = fresh;
    }
  }

  // How many nodes each cell holds, and their middle.
  weigh(cell) {
    let mass = 0, cx = 0, cy = 0;
    for (let slot = 4 * cell; slot < 4 * cell + 4; slot++) {
      const child = this.children[slot];
      if (child > 0) {
        this.weigh(child);
        mass += this.mass[child];
        cx += this.mass[child] * this.cx[child];
        cy += this.mass[child] * this.cy[child];
      }
      for (let node = child < 0 ? -child - 1 : -1; node >= 0; node = this.following[node]) {
        mass++;
        cx += this.x[node];
        cy += this.y[node];
      }
    }
    this.mass[cell] = mass;
    this.cx[cell] = cx / mass;
    this.cy[cell] = cy / mass;
  }

  repel() {
    const { x, y, vx, vy, count, children, mass, cx, cy, following } = this;
    const push = ForceLayout.REPULSION * this.scale ** 2 * this.heat, near = ForceLayout.NEARNESS;
    const cells = this.stack ||= new Int32Array(4 * (ForceLayout.DEEPEST + 4));
    const widths = this.widths ||= new Float64Array(4 * (ForceLayout.DEEPEST + 4));
    for (let i = 0; i < count; i++) {
      const px = x[i], py = y[i];
      let fx = 0, fy = 0, waiting = 1;
      cells[0] = 0;
      widths[0] = this.width * this.width;
      while (waiting) {
        const cell = cells[--waiting], area = widths[waiting];
        let dx = cx[cell] - px, dy = cy[cell] - py, square = dx * dx + dy * dy;
        if (area < near * square) {
          const force = mass[cell] / square;
          fx -= dx * force;
          fy -= dy * force;
          continue;
        }
        for (let slot = 4 * cell; slot < 4 * cell + 4; slot++) {
          const child = children[slot];
          if (child > 0) {
            cells[waiting] = child;
            widths[waiting++] = area / 4;
          }
          for (let node = child < 0 ? -child - 1 : -1; node >= 0; node = following[node]) {
            if (node === i) continue;
            dx = x[node] - px;
            dy = y[node] - py;
            if (dx === 0 && dy === 0) { // in one place: apart, each its own way
              dx = Math.cos(i) * 1e-2;
              dy = Math.sin(i) * 1e-2;
            }
            square = Math.max(dx * dx + dy * dy, 9);
            fx -= dx / square;
            fy -= dy / square;
          }
        }
      }
      vx[i] += fx * push;
      vy[i] += fy * push;
    }
  }

  move() {
    const { x, y, vx, vy, held, count } = this;
    const pull = ForceLayout.GRAVITY * this.heat;
    for (let i = 0; i < count; i++) {
      if (held[i]) {
        vx[i] = vy[i] = 0;
        continue;
      }
      vx[i] = (vx[i] - x[i] * pull) * ForceLayout.FRICTION;
      vy[i] = (vy[i] - y[i] * pull) * ForceLayout.FRICTION;
      x[i] += vx[i];
      y[i] += vy[i];
    }
  }
}
