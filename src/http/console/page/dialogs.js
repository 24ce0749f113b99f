// Asking before something is done, and saying what came of it.

import { byId, el, say } from './dom.js';

/** Every `data-close` button closes the dialog that it is in. */
export function closeButtons() {
  document.querySelectorAll('dialog [data-close]').forEach((button) => {
    button.addEventListener('click', () => button.closest('dialog').close());
  });
}

let fading;

/** A word about what was done; read out, and gone after a while. */
export function tell(text) {
  const toast = byId('toast');
  // Beside an open drawer nothing is seen or read out: what is said has to be in it.
  const place = document.querySelector('#drawer[open]') ?? document.body;
  if (toast.parentNode !== place) place.append(toast);
  requestAnimationFrame(() => say(toast, text));
  toast.classList.add('shown');
  clearTimeout(fading);
  fading = setTimeout(() => {
    toast.classList.remove('shown');
    say(toast, '');
  }, 6000);
}

/** A labelled field of a confirmation. */
export function field(name, label, attributes = {}, help = null) {
  const input = el('input', { id: `confirm-${name}`, name, autocomplete: 'off', spellcheck: 'false', ...attributes });
  const hint = help && el('span', { class: 'hint', id: `confirm-${name}-hint` }, help);
  if (hint) input.setAttribute('aria-describedby', hint.id);
  const box = attributes.type === 'checkbox'
    ? el('label', { class: 'check' }, input, ` ${label}`)
    : el('div', { class: 'field' }, el('label', { for: input.id }, label), input, hint);
  return { box, input };
}

/**
 * Asks for a confirmation. `act()` does it: its promise is waited for, an error is shown and the dialog stays. `typed` is a
 * name that has to be typed before. `danger` colours the button.
 */
export function confirm({ title, text, fields = [], verb, typed, danger = false, act, onerror }) {
  const [dialog, form, button] = [byId('confirm'), byId('confirm-form'), byId('confirm-do')];
  const error = byId('confirm-error');
  say(byId('confirm-h'), title);
  say(byId('confirm-text'), text);
  say(button, verb);
  say(error, '');
  button.className = danger ? 'primary danger' : 'primary';
  button.disabled = false;
  const all = [...fields];
  if (typed !== undefined) {
    const name = field('typed', `Type ${typed} to confirm`, { required: true });
    name.input.addEventListener('input', () => { button.disabled = name.input.value !== typed; });
    button.disabled = true;
    all.push(name);
  }
  byId('confirm-fields').replaceChildren(...all.map(({ box }) => box));
  const before = document.activeElement;
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (button.disabled || (typed !== undefined && all.at(-1).input.value !== typed)) return;
    button.disabled = true;
    dialog.setAttribute('aria-busy', 'true');
    say(error, '');
    try {
      const done = await act();
      dialog.close();
      if (done) tell(done);
    } catch (refused) {
      say(error, refused.message);
      onerror?.(refused);
    } finally {
      button.disabled = false;
      dialog.removeAttribute('aria-busy');
    }
  };
  dialog.onclose = () => {
    // What had the focus may be gone with what was done.
    if (before?.isConnected) before.focus();
    else byId('main').focus();
  };
  dialog.showModal();
  (all[0]?.input ?? dialog.querySelector('[data-close]')).focus();
}
