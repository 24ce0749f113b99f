// Before the first paint, and no module for that reason: which theme was chosen.
'use strict';
(() => {
  const KEY = 'headcount.theme';
  const root = document.documentElement;
  const stored = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const apply = (theme) => {
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(stored());
  addEventListener('DOMContentLoaded', () => {
    const select = document.getElementById('theme');
    select.value = root.dataset.theme ?? 'system';
    select.addEventListener('change', () => {
      apply(select.value);
      try { localStorage.setItem(KEY, select.value); } catch { /* chosen for this page alone */ }
    });
  });
})();
