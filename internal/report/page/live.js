(() => {
'use strict';
if (!/^https?:$/.test(location.protocol)) return; // saved as a file
const $ = (s, e = document) => e.querySelector(s), $$ = (s, e = document) => [...e.querySelectorAll(s)];
const root = document.documentElement, path = location.pathname;
const events = path.endsWith('/') ? path + 'events' : path + '/events';

// have is the revision of what is shown, want the latest one that the server has named.
let have = root.dataset.revision, want = have, over = false, gone = false, fetching = false, pressed = false, stream = null, again = 0;

function say(state, text) {
  root.dataset.live = state;
  const e = $('#live');
  if (e && e.textContent !== text) e.textContent = text;
}

function listen() {
  if (stream || over || document.hidden) return;
  stream = new EventSource(events);
  stream.onopen = () => say('live', 'Live');
  stream.addEventListener('revision', e => { want = e.data; refresh() });
  stream.addEventListener('over', e => { want = e.data; over = true; close(); refresh() });
  stream.addEventListener('gone', () => { over = gone = true; close(); say('gone', 'Deleted: this page shows what was last known. Save it now.') });
  stream.onerror = () => {
    if (!stream) return;
    say('lost', 'Not connected: trying again');
    if (stream.readyState === EventSource.CLOSED) { close(); setTimeout(listen, 5000) }
  };
}

function close() {
  if (stream) stream.close();
  stream = null;
}

// refresh shows the latest content. The server may answer with an earlier revision while it is busy: then it is asked again.
async function refresh() {
  clearTimeout(again);
  if (have === want) { if (over && !gone) say('over', 'Complete'); return }
  if (fetching) return;
  if (pressed || !getSelection().isCollapsed) { again = setTimeout(refresh, 500); return } // nothing moves under the reader's hand
  fetching = true;
  try {
    const answer = await fetch(location.href, {cache: 'no-store', headers: {Accept: 'text/html'}});
    if (!answer.ok) throw new Error(answer.status);
    show(new DOMParser().parseFromString(await answer.text(), 'text/html'));
  } catch {
    if (!stream) say('lost', 'Not connected: trying again');
  }
  fetching = false;
  if (have !== want) again = setTimeout(refresh, 1000);
  else if (over && !gone) say('over', 'Complete');
}

// place is how an element is found again in newer content: its position among those of its kind.
function place(e) {
  if (!e || !e.closest('main')) return null;
  if (e.id) return '#' + CSS.escape(e.id);
  const kind = e.tagName.toLowerCase(), i = $$('main ' + kind).indexOf(e);
  return {kind, i, text: e.textContent};
}

function find(at) {
  if (!at) return null;
  if (typeof at === 'string') return $(at);
  const all = $$('main ' + at.kind);
  return all.find(e => e.textContent === at.text) || all[at.i];
}

const titleOf = d => { const s = $('summary', d); return s && s.firstChild ? s.firstChild.textContent : '' };

function show(page) {
  const next = $('main', page);
  if (!next) return;
  const focus = place(document.activeElement), y = scrollY;
  const open = new Map($$('main details').map(d => [titleOf(d), d.open]));
  const sideways = $$('main .scroll').map(e => e.scrollLeft);
  $('main').replaceWith(document.importNode(next, true));
  for (const s of ['#meta', '#series', '.top', 'footer']) {
    const from = $(s, page), to = $(s);
    if (from && to) to.replaceWith(document.importNode(from, true));
    else if (from) $('main').after(document.importNode(from, true));
    else if (to) to.remove();
  }
  document.title = page.title;
  for (const d of $$('main details')) if (open.has(titleOf(d))) d.open = open.get(titleOf(d));
  $$('main .scroll').forEach((e, i) => { e.scrollLeft = sideways[i] || 0 });
  have = root.dataset.revision = page.documentElement.dataset.revision;
  const to = find(focus);
  if (to) to.focus({preventScroll: true});
  scrollTo({top: y, behavior: 'instant'});
  document.dispatchEvent(new Event('redquake:content'));
}

addEventListener('pointerdown', () => { pressed = true });
for (const end of ['pointerup', 'pointercancel', 'blur']) addEventListener(end, () => { pressed = false });
// A page that nobody sees costs nothing; browsers open only some connections to a server, too.
document.addEventListener('visibilitychange', () => document.hidden ? close() : listen());
addEventListener('pagehide', close);
listen();
})();
