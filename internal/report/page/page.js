(() => {
'use strict';
const $ = (s, e = document) => e.querySelector(s), $$ = (s, e = document) => [...e.querySelectorAll(s)];
const root = document.documentElement;
root.classList.remove('nojs');
addEventListener('beforeprint', () => $$('details').forEach(d => { d.dataset.o = d.open ? 1 : ''; d.open = true }));
addEventListener('afterprint', () => $$('details').forEach(d => d.open = !!d.dataset.o));

// M describes the columns C and the curves; package curve writes it. Times are seconds from zero; step i begins at i * M.dt - M.t0.
let M = null, C = null, main = null, stacks = [], view = null, begun = 0;

async function load(M) {
  const bin = Uint8Array.from(atob($('#series').textContent.trim()), c => c.charCodeAt(0));
  const buf = await new Response(new Blob([bin]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
  const all = new DataView(buf);
  const C = {};
  M.cols.forEach((c, k) => {
    const v = C[c.name] = new Float32Array(M.n);
    for (let i = 0; i < M.n; i++) {
      const x = all.getUint16(2 * (k * M.n + i), true);
      v[i] = c.log ? (x ? 1e-3 * 2 ** ((x - 1) / 2520) : NaN) : x * (c.by || 1);
    }
  });
  return C;
}

const nb = '\u00a0', num = n => Math.round(n).toLocaleString('en-US');
const sig = x => x.toFixed(Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x) || 1))));
const ms = v => v !== v ? '–' : v < 1000 ? String(+sig(v)) + nb + 'ms' : sig(v / 1000) + nb + 's';
const rel = (t, d) => (t < 0 ? '−' : '+') + Math.abs(t).toFixed(d) + nb + 's';
const clock = t => new Date(Math.round(M.clock0 + (t + M.t0) * 1000)).toISOString().slice(11, 21);
const idx = t => Math.min(M.n - 1, Math.max(0, Math.floor((t + M.t0) / M.dt + 1e-6)));
const range = s => s === main ? view : [+s.dataset.a, +s.dataset.b];
const failed = i => M.err.reduce((a, c) => a + C[c][i], 0);

// read returns the text of the read-outs for step i.
function read(i) {
  const per = 1 / M.dt, classes = M.err.filter(c => C[c][i]).map(c => c + ' ' + num(C[c][i])), s = failed(i);
  const lat = `p99 <b>${ms(C.p99[i])}</b>`;
  return {
    tps: `<b>${num(C.ok[i] * per)}</b>/s`,
    err: `<b>${num(s * per)}</b>/s` + (classes.length ? ' · ' + classes.join(' · ') : ''),
    lat: `p50 <b>${ms(C.p50[i])}</b> · ${lat} · max <b>${ms(C.max[i])}</b>`,
    zoom: `answered <b>${num(C.ok[i])}</b> · failed <b>${num(s)}</b>` + (classes.length ? ` (${classes.join(', ')})` : '') + ' · ' + lat,
  };
}

let cur = null, say = 0;
function point(t, speak) {
  cur = t;
  for (const s of stacks) {
    const [a, b] = range(s), c = $('.cur', s), on = t != null && t >= a && t <= b;
    c.style.display = on ? 'block' : 'none';
    if (!on) continue;
    const f = (t - a) / (b - a), l = c.firstChild;
    c.style.left = f * 100 + '%';
    l.textContent = rel(t - (+s.dataset.zero || 0), b - a < 20 ? 2 : 1) + ' · ' + clock(t);
    l.style.transform = `translateX(-${f < .12 ? 0 : f > .88 ? 100 : 50}%)`;
  }
  const o = t == null ? null : read(idx(t));
  $$('output[data-read]').forEach(e => e.innerHTML = o ? o[e.dataset.read] : '');
  if (speak && o) {
    clearTimeout(say);
    say = setTimeout(() => $('#say').textContent = rel(t, 1) + ': ' + [o.tps, 'errors ' + o.err, o.lat].join(', ').replace(/<[^>]+>/g, ''), 250);
  }
}

// most is how many points a curve has: one a pixel. Of each bucket the lowest, the highest and the mean stay, as in package curve.
let most = 1200;
function decimate(v, i0, i1) {
  const n = i1 - i0, m = Math.min(n, most), r = [];
  for (let k = 0; k < m; k++) {
    const a = i0 + Math.floor(k * n / m), z = i0 + Math.floor((k + 1) * n / m);
    let lo = 1 / 0, hi = -1 / 0, s = 0, c = 0;
    for (let i = a; i < z; i++) {
      const x = v[i];
      if (x !== x) continue;
      if (x < lo) lo = x;
      if (x > hi) hi = x;
      s += x;
      c++;
    }
    r.push([a, z, c ? lo : NaN, c ? hi : NaN, c ? s / c : NaN]);
  }
  return r;
}

function bars(p, i0, i1, X, y) {
  const m = Math.min(i1 - i0, most), per = 1 / M.dt;
  let d = '';
  for (let k = 0; k < m; k++) {
    const q = i0 + Math.floor(k * (i1 - i0) / m), z = i0 + Math.floor((k + 1) * (i1 - i0) / m);
    let at = q, worst = -1;
    for (let i = q; i < z; i++) { const e = failed(i); if (e > worst) { worst = e; at = i } }
    const v = C[p.col][at];
    if (!v) continue;
    let base = 0;
    for (const c of M.err) { if (c === p.col) break; base += C[c][at] }
    const x = X(q);
    d += `M${x} ${y(base * per)}V${y((base + v) * per)}H${Math.max(X(z), x + 14)}V${y(base * per)}Z`;
  }
  return d;
}

function curve(p, i0, i1, X, y) {
  const f = p.rate ? 1 / M.dt : 1;
  let d = '', on = 0, ly;
  for (const q of decimate(C[p.col], i0, i1)) {
    const x0 = X(q[0]), x1 = X(q[1]), v = p.use === 'hi' ? q[3] : q[4];
    if (p.kind === 'band') {
      if (q[1] - q[0] > 1 && v === v) {
        const t = y(q[3] * f), u = y(q[2] * f);
        if (u - t > 1) d += `M${x0} ${t}H${x1}V${u}H${x0}Z`;
      }
      continue;
    }
    if (v !== v) { if (on && p.kind === 'area') d += 'V1000Z'; on = 0; continue }
    const t = y(v * f);
    d += on ? (t === ly ? 'H' + x1 : `V${t}H${x1}`) : p.kind === 'area' ? `M${x0} 1000V${t}H${x1}` : `M${x0} ${t}H${x1}`;
    on = 1;
    ly = t;
  }
  return on && p.kind === 'area' ? d + 'V1000Z' : d;
}

function draw() {
  most = Math.max(200, Math.min(1200, Math.round($('.plot', main).clientWidth)));
  const [a, b] = view, i0 = Math.max(0, Math.floor((a + M.t0) / M.dt) - 1), i1 = Math.min(M.n, Math.ceil((b + M.t0) / M.dt) + 1);
  const X = i => Math.round((i * M.dt - M.t0 - a) / (b - a) * 1e4);
  for (const p of M.paths) {
    const log = v => (Math.log10(Math.max(v, p.lo)) - Math.log10(p.lo)) / (Math.log10(p.hi) - Math.log10(p.lo));
    const y = v => Math.round((1 - Math.min(1.2, p.log ? log(v) : v / p.hi)) * 1e3);
    $('#' + p.id).setAttribute('d', p.kind === 'bars' ? bars(p, i0, i1, X, y) : curve(p, i0, i1, X, y));
  }
  for (const e of $$('[data-t],[data-t0]', main)) {
    const t0 = +(e.dataset.t ?? e.dataset.t0), t1 = +(e.dataset.t ?? e.dataset.t1), on = t1 >= a && t0 <= b;
    e.style.visibility = on ? '' : 'hidden';
    if (!on) {
      e.classList.remove('flip'); // a hidden note replaces no other
      continue;
    }
    const l = Math.max(0, (t0 - a) / (b - a)), r = Math.min(1, (t1 - a) / (b - a));
    e.style.left = l * 100 + '%';
    if (e.classList.contains('fl')) e.classList.toggle('flip', l > .6);
    if (e.dataset.t0 != null) e.style.width = (r - l) * 100 + '%';
  }
  axis(a, b);
}

function axis(a, b) {
  const ax = $('.xaxis', main), step = [.05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600].find(s => (b - a) / s <= 9) || 7200;
  $$('.xt', ax).forEach(e => e.remove());
  const add = (cls, f, text) => { const e = document.createElement('span'); e.className = cls; e.style.left = f * 100 + '%'; e.textContent = text; ax.append(e) };
  for (let k = Math.ceil(a / step - 1e-9); k * step <= b - (b - a) * .03; k++) {
    const t = k * step;
    add('xt' + (!k && M.fault ? ' z' : ''), (t - a) / (b - a), !k ? '0' : step >= 120 && step % 60 === 0 ? (t < 0 ? '−' : '+') + Math.abs(t / 60) + nb + 'min' : rel(t, step < .1 ? 2 : step < 1 ? 1 : 0));
  }
  const c0 = M.clock0 / 1e3 + M.t0, cs = [1, 5, 10, 30, 60, 300, 600, 1800, 3600].find(s => (b - a) / s <= 4) || 7200;
  for (let u = Math.ceil((c0 + a) / cs) * cs; u <= c0 + b - (b - a) * .03; u += cs) add('xt xc', (u - c0 - a) / (b - a), clock(u - c0).slice(0, 8));
}

function zoom(a, b) {
  const min = 20 * M.dt;
  if (b - a < min) { const m = (a + b) / 2; a = m - min / 2; b = m + min / 2 }
  view = [Math.max(M.a, a), Math.min(M.b, b)];
  draw();
  point(cur);
  $$('.bar button').forEach(e => e.setAttribute('aria-pressed', String(Math.abs(e.dataset.a - view[0]) < 1e-6 && Math.abs(e.dataset.b - view[1]) < 1e-6)));
}

function wire() {
  for (const s of stacks) {
    const over = $('.over', s), brush = $('.brush', s);
    const at = e => { const r = over.getBoundingClientRect(), [a, b] = range(s); return a + (b - a) * Math.min(1, Math.max(0, (e.clientX - r.left) / r.width)) };
    let from = null;
    s.addEventListener('pointermove', e => {
      const t = at(e);
      point(t);
      if (from == null) return;
      const [a, b] = range(s), p = Math.min(t, from), q = Math.max(t, from);
      brush.style.display = 'block';
      brush.style.left = (p - a) / (b - a) * 100 + '%';
      brush.style.width = (q - p) / (b - a) * 100 + '%';
    });
    s.addEventListener('pointerdown', e => point(at(e)));
    s.addEventListener('pointerleave', () => { if (from == null) point(null) });
    s.addEventListener('keydown', e => {
      const [a, b] = range(s), st = e.shiftKey ? 10 : 1, k = e.key;
      let t = cur == null || cur < a || cur > b ? Math.min(b, Math.max(a, +s.dataset.zero || 0)) : cur;
      if (k === 'ArrowLeft') t -= M.dt * st;
      else if (k === 'ArrowRight') t += M.dt * st;
      else if (k === 'Home') t = a;
      else if (k === 'End') t = b;
      else if (s === main && (k === '+' || k === '=')) { const w = (b - a) / 4; return zoom(t - w, t + w) }
      else if (s === main && (k === '-' || k === 'Escape' || k === '0')) return zoom(M.a, M.b);
      else return;
      e.preventDefault();
      point(Math.min(b, Math.max(a, t)), true);
    });
    if (s !== main) continue;
    s.addEventListener('pointerdown', e => { if (e.pointerType === 'mouse' && e.button === 0 && e.target.closest('.plot')) { from = at(e); s.setPointerCapture(e.pointerId) } });
    s.addEventListener('pointerup', e => {
      if (from == null) return;
      const t = at(e), p = Math.min(t, from), q = Math.max(t, from);
      from = null;
      brush.style.display = 'none';
      if (q - p > (view[1] - view[0]) * .012) zoom(p, q);
    });
    s.addEventListener('dblclick', () => zoom(M.a, M.b));
    $$('.bar button').forEach(b => b.addEventListener('click', () => zoom(+b.dataset.a, +b.dataset.b)));
  }
}

// begin draws what the page holds. It is called again when a script has replaced that: then the part that the reader has chosen stays, and the cursor.
async function begin() {
  const meta = $('#meta'), curves = $('#curves'), mine = ++begun;
  if (!meta || !curves) return;
  const next = JSON.parse(meta.textContent), columns = await load(next);
  if (mine !== begun) return;
  const before = M, chosen = view, at = cur;
  [M, C, main, stacks, view, cur] = [next, columns, curves, $$('.stack'), [next.va, next.vb], null];
  wire();
  if ($('.plot', main).clientWidth < 600 && M.n > 600) draw();
  if (before) {
    const moved = before.t0 - M.t0;
    if (chosen[0] !== before.va || chosen[1] !== before.vb) zoom(chosen[0] + moved, chosen[1] + moved);
    if (at != null) point(at + moved);
  }
  root.dataset.ready = performance.now().toFixed(0);
}

const start = () => begin().catch(() => root.classList.add('nojs'));
document.addEventListener('redquake:content', start);
start();
})();
