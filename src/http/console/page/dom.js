// Nodes, made and kept up to date. Text is always text: nothing here makes markup of a string.

export const byId = (id) => document.getElementById(id);

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An element with attributes (`onclick` and the like are listeners) and children, nodes or text. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets a node's text, if it is another one: a screen reader and a selection are left alone otherwise. */
export function say(node, text) {
  const wanted = text === null || text === undefined ? '' : String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function set(node, attribute, value) {
  const wanted = String(value);
  if (node.getAttribute(attribute) !== wanted) node.setAttribute(attribute, wanted);
}

/**
 * Makes the children of `parent` those of `items`, in order: rows are kept by key, so that what has the focus keeps it.
 * `make(item)` makes a node, `update(node, item)` brings it up to date.
 */
export function keyed(parent, items, keyOf, make, update) {
  const known = parent.rowsByKey ?? new Map();
  const next = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (next.has(key)) continue;
    const node = known.get(key) ?? make(item);
    known.delete(key);
    next.set(key, node);
    update(node, item);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  known.forEach((node) => node.remove());
  parent.rowsByKey = next;
}

/** A row whose cells are found by name: `row.cells_.total`. The first one heads it. */
export function row(columns, { role = false } = {}) {
  const node = el('tr', role ? { role: 'row' } : {});
  node.parts = {};
  columns.forEach(({ name, label, kind = '' }, index) => {
    const head = index === 0;
    const cell = el(head ? 'th' : 'td', {
      scope: head ? 'row' : undefined,
      role: role ? (head ? 'rowheader' : 'cell') : undefined,
      class: kind || undefined,
      'data-label': label,
    });
    node.parts[name] = cell;
    node.append(cell);
  });
  return node;
}

/** A list of terms and what they are, kept up to date: `[[term, text, state?], …]`. */
export function facts(list, pairs) {
  keyed(list, pairs, ([term]) => term,
    ([term]) => el('div', {}, el('dt', {}, term), el('dd')),
    (node, [, text, state]) => {
      say(node.lastChild, text);
      set(node, 'data-state', state ?? '');
    });
}
