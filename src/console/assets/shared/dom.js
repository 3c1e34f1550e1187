// Building the page. Text always goes in as text: nothing from a server is ever read as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === 'data') {
      for (const [key, text] of Object.entries(value)) element.setAttribute(`data-${key}`, text);
    } else if (name === 'value') {
      element.value = value;
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** An HTML element. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Replaces everything in `element`. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child instanceof Node || typeof child === 'string'));
}

/** Sets a text only when it changed, so that a screen reader does not read the same again. */
export function say(element, text) {
  const words = String(text);
  if (element.textContent !== words) element.textContent = words;
}

/** A field with its label; `hint` is read out with it. */
export function field(id, label, control, hint) {
  control.id = id;
  const note = hint ? h('span', { class: 'hint', id: `${id}-hint` }, hint) : null;
  if (note) control.setAttribute('aria-describedby', `${id}-hint`);
  return h('div', { class: 'field' }, h('label', { for: id }, label), control, note);
}

/** A checkbox with its label beside it. */
export function check(id, label, checked) {
  const box = h('input', { type: 'checkbox', id, checked });
  return { box, element: h('label', { class: 'check', for: id }, box, h('span', {}, label)) };
}
