// What a reader cannot read of a page, as lines: texts that cover each other, that are cut off or leave their column, that
// stand on bars, and words that are broken although they would fit on a line.
(() => {
  'use strict';
  const found = new Set(), texts = [], screen = document.documentElement.clientWidth;
  const say = (what, text, e) => found.add(`${what}: "${text.trim().slice(0, 60)}" in ${e.tagName.toLowerCase()}` +
    (e.className && e.getAttribute('class') ? '.' + e.getAttribute('class') : ''));
  const covers = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;

  // seen is the part of a box that its ancestors let through: those that scroll, and those that cut it off.
  const seen = (r, e) => {
    const box = {left: r.left, right: r.right, top: r.top, bottom: r.bottom, cut: false};
    for (let p = e; p && p !== document.body; p = p.parentElement) {
      const s = getComputedStyle(p), c = p.getBoundingClientRect();
      const x = s.overflowX !== 'visible', y = s.overflowY !== 'visible';
      const scrolls = s.overflowX === 'auto' || s.overflowX === 'scroll';
      const told = s.textOverflow === 'ellipsis' && p.title;
      if (!told && (x && (box.left < c.left - 1 || box.right > c.right + 1) ||
        y && !scrolls && (box.top < c.top - 1 || box.bottom > c.bottom + 1))) {
        box.cut = box.cut || !scrolls || !!e.closest('caption');
      }
      if (x) [box.left, box.right] = [Math.max(box.left, c.left), Math.min(box.right, c.right)];
    }
    return box;
  };

  // onBars tells whether a box stands on a dark or coloured part of a drawing.
  const onBars = (r, plot) => [...plot.querySelectorAll('svg.g path')].some(path => {
    if (!/--(ink|err)/.test(path.getAttribute('fill'))) return false;
    const back = path.getScreenCTM().inverse();
    return [0.02, 0.2, 0.4, 0.6, 0.8, 0.98].some(x => path.isPointInFill(
      new DOMPoint(r.left + x * r.width, (r.top + r.bottom) / 2).matrixTransform(back)));
  });

  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement, text = node.data, range = document.createRange();
    if (!text.trim() || e.closest('script,style,.vh,.skip') ||
      !e.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    range.selectNodeContents(node);
    const block = getComputedStyle(e).maxWidth !== 'none' && e || e.closest('td,th') || e.closest('dd,dt,p,h1,h2,h3,caption,summary,small,div,li,pre,body');
    for (const r of range.getClientRects()) {
      if (r.width < 1) continue;
      const box = seen(r, e);
      if (box.cut) say('cut off', text, e);
      const cell = e.closest('td,th,.tile,dl.facts>div');
      if (cell && r.right > cell.getBoundingClientRect().right + 1) say('leaves its column', text, e);
      if (box.right > screen + 1 || box.left < -1) say('off the screen', text, e);
      if (box.right > box.left) texts.push({box, text, e});
    }
    const bars = e.closest('.note') && getComputedStyle(e.closest('.note')).backgroundColor === 'rgba(0, 0, 0, 0)' && e.closest('.plot');
    if (bars && onBars(range.getBoundingClientRect(), bars)) say('on bars', text, e);
    const wide = block.matches('td,th') && block.closest('.scroll') || block; // columns of what scrolls have all room
    const s = getComputedStyle(wide), room = wide.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight);
    for (const word of text.matchAll(/[\d.,]+ (?:%|µs|ms|s|min|h)(?!\p{L})|[^ \n\t]+/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const parts = [...range.getClientRects()].filter(r => r.width > 0.5);
      const lines = new Set(parts.map(r => Math.round(r.top)));
      const width = parts.reduce((sum, r) => sum + r.width, 0);
      if (lines.size > 1 && width < room) say('broken', word[0], e);
    }
  }
  texts.sort((a, b) => a.box.top - b.box.top);
  texts.forEach((a, i) => {
    for (let k = i + 1; k < texts.length && texts[k].box.top < a.box.bottom; k++) {
      const b = texts[k];
      if (a.e !== b.e && covers(a.box, b.box)) say(`covers "${b.text.trim().slice(0, 40)}"`, a.text, a.e);
    }
  });
  for (const e of document.querySelectorAll('main .badge')) {
    const r = e.getBoundingClientRect();
    if (r.width && (r.right > screen || r.left < 0)) say('verdict off the screen', e.innerText, e);
  }
  const all = [...found];
  return all.length > 30 ? [...all.slice(0, 30), `and ${all.length - 30} more`] : all;
})()
