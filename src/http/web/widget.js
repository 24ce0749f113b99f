// <headcount-like item="post-1" token-src="/headcount-token"></headcount-like>
//
// A like button with a live total. Its attributes, events and styles are in docs/browsers.md.
(() => {
  "use strict";
  if (customElements.get("headcount-like")) return;

  const from = document.currentScript?.src;
  const HERE = from ? new URL(".", from).href : new URL("/", location.href).href;
  // Items that share a stream. A browser opens six connections to a host.
  const PER_STREAM = 50;
  const FIRST_WAIT_MS = 1_000, LONGEST_WAIT_MS = 60_000, SILENCE_MS = 120_000, LOOK_AGAIN_MS = 3_000;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const part = encodeURIComponent;

  // What a token says. Only its back end and the service have to believe it.
  const claims = (token) => {
    try {
      const bytes = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
      return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))));
    } catch {
      return {};
    }
  };

  class Failure extends Error {
    constructor(status, error, detail) {
      super(detail || error);
      Object.assign(this, { status, error, detail });
    }
  }

  const failure = async (response) => {
    const problem = await response.json().catch(() => ({}));
    return new Failure(response.status, problem.error || "http", problem.detail);
  };

  // All buttons of a page that ask the same service with the same token, or without one: one stream.
  class Hub {
    buttons = new Map();

    constructor(api, src, token) {
      Object.assign(this, { api, src, given: token });
    }

    async token() {
      if (!this.src) return this.given;
      const now = Date.now() / 1_000;
      if (!this.fetched || (await this.fetched.catch(() => ({ until: 0 }))).until < now) this.fetched = this.fetch();
      return (await this.fetched).token;
    }

    async fetch() {
      const response = await fetch(this.src, { cache: "no-store" });
      if (!response.ok) throw new Failure(response.status, "no_token", "the token's address did not answer with one");
      const text = (await response.text()).trim();
      const token = text.startsWith("{") ? JSON.parse(text).token : text;
      // Not in its last seconds, and not asked for anew at every call if its clock is wrong.
      return { token, until: Math.max((claims(token).exp || 0) - 30, Date.now() / 1_000 + 10) };
    }

    // The token's user; where there is none, the one that a button names.
    async user(named) {
      const token = await this.token();
      return token ? claims(token).sub : named;
    }

    async call(method, path, signal, again = true) {
      const token = await this.token();
      const headers = token ? { authorization: `Bearer ${token}` } : {};
      const response = await fetch(new URL(path, this.api), { method, headers, signal, credentials: "omit" });
      if (response.ok) return response;
      if (response.status === 401 && this.src && again) {
        this.fetched = undefined;
        return this.call(method, path, signal, false);
      }
      throw await failure(response);
    }

    add(item, button) {
      if (!this.buttons.has(item)) this.buttons.set(item, new Set());
      this.buttons.get(item).add(button);
      this.listenSoon();
    }

    remove(item, button) {
      const of = this.buttons.get(item);
      of?.delete(button);
      if (of?.size === 0) {
        this.buttons.delete(item);
        this.listenSoon();
      }
    }

    // All buttons of an item, or those of one user: with a token, that is all of them.
    each(item, tell, user) {
      const isOf = (button) => !user || this.src || this.given || button.named === user;
      for (const button of this.buttons.get(item) ?? []) if (isOf(button)) tell(button);
    }

    // A like's answer and an event that counts it may overtake each other. Once the total is rolled up, both are in it.
    async look(item) {
      await sleep(LOOK_AGAIN_MS);
      const now = await this.call("GET", `likes/${part(item)}`).then((response) => response.json());
      this.each(item, (button) => button.now(now));
    }

    // Once for all the buttons that come or go together. Not in a tab that nobody sees: all tabs of a site share the six
    // connections, and a like needs one.
    listenSoon() {
      clearTimeout(this.soon);
      this.soon = setTimeout(() => {
        this.stop?.abort();
        if (document.hidden) return;
        this.stop = new AbortController();
        const items = [...this.buttons.keys()];
        for (let at = 0; at < items.length; at += PER_STREAM) {
          this.listen(items.slice(at, at + PER_STREAM), this.stop.signal);
        }
      }, 10);
    }

    async listen(items, stop) {
      for (let wait = FIRST_WAIT_MS; !stop.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
        try {
          await this.hear(items, stop, () => (wait = FIRST_WAIT_MS / 2));
        } catch (error) {
          if (stop.aborted) return;
          for (const item of items) this.each(item, (button) => button.failed(error));
          // Waiting makes nothing better of these.
          const isFinal = [400, 403, 404, 410].includes(error.status) || (error.status === 401 && !this.src);
          if (isFinal) return;
        }
        // Not all pages at the same time.
        await sleep(wait * (0.5 + Math.random()));
      }
    }

    async hear(items, stop, heard) {
      const query = items.map((item) => `item=${part(item)}`).join("&");
      const named = new Set(items.flatMap((item) => Array.from(this.buttons.get(item) ?? [], (button) => button.named)));
      const users = new Set(await Promise.all(Array.from(named, (name) => this.user(name))));
      for (const user of users) {
        if (!user) continue;
        const response = await this.call("GET", `likes?${query}&user=${part(user)}`, stop);
        for (const now of (await response.json()).items) this.each(now.item, (button) => button.now(now, user), user);
      }
      const silence = new AbortController();
      const response = await this.call("GET", `batch/likes/events?${query}`, AbortSignal.any([stop, silence.signal]));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ; ) {
        const timer = setTimeout(() => silence.abort(), SILENCE_MS);
        const { value, done } = await reader.read().finally(() => clearTimeout(timer));
        if (done) return;
        heard();
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const [, event] = /^event: (.*)$/m.exec(block) || [];
          if (event !== "total" && event !== "deleted") continue;
          const now = JSON.parse(/^data: (.*)$/m.exec(block)[1]);
          if (event === "deleted") now.liked = false;
          this.each(now.item, (button) => button.now(now));
        }
      }
    }
  }

  const hubs = new Map();
  const hubOf = (...who) => {
    const key = JSON.stringify(who);
    if (!hubs.has(key)) hubs.set(key, new Hub(...who));
    return hubs.get(key);
  };
  document.addEventListener("visibilitychange", () => hubs.forEach((hub) => hub.listenSoon()));

  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { display: inline-flex; align-items: center; gap: var(--headcount-gap, .4em); font: inherit;
      --plain: #57606a; --red: #c21c2b; }
    :host([hidden]) { display: none; }
    @media (prefers-color-scheme: dark) { :host { --plain: #b4bdc7; --red: #ff8a80; } }
    button { display: inline-grid; place-items: center; min-width: 2em; min-height: 2em; padding: .25em; margin: 0;
      border: 0; border-radius: 999px; background: none; font: inherit; cursor: pointer;
      color: var(--headcount-color, var(--plain)); }
    button:hover:enabled, button:focus-visible { color: var(--headcount-liked, var(--red)); }
    button:focus-visible { outline: 2px solid currentColor; outline-offset: 1px; }
    button:disabled { cursor: default; }
    button[aria-pressed=true] { color: var(--headcount-liked, var(--red)); }
    button[aria-pressed=true] svg { fill: currentColor; }
    svg { width: var(--headcount-size, 1.25em); height: var(--headcount-size, 1.25em); fill: none;
      stroke: currentColor; stroke-width: 2; }
    :host([state=busy]) svg { opacity: .6; }
    :host([state=error]) svg { stroke-dasharray: 3 3; }
    [part=total] { font-variant-numeric: tabular-nums; }
  `);

  const heart = () => {
    const [svg, path] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", "M12 20.5C7 17 3 13.6 3 9.5A4.8 4.8 0 0 1 12 7a4.8 4.8 0 0 1 9 2.5C21 13.6 17 17 12 20.5z");
    svg.append(path);
    return svg;
  };

  class Like extends HTMLElement {
    static observedAttributes = ["item", "user", "token", "token-src", "api", "label", "compact"];
    #button = document.createElement("button");
    #total = document.createElement("span");
    #hub;
    #item;
    // What the service said last; and what the user wants, while that is on its way.
    #known = { liked: false };
    #wanted;
    #sending = false;

    constructor() {
      super();
      const root = this.attachShadow({ mode: "open", delegatesFocus: true });
      root.adoptedStyleSheets = [sheet];
      const icon = document.createElement("slot");
      icon.name = "icon";
      icon.part = "icon";
      icon.append(heart());
      Object.assign(this.#button, { type: "button", part: "button", disabled: true });
      this.#button.append(icon);
      this.#button.addEventListener("click", () => this.#clicked());
      this.#total.part = "total";
      this.#total.setAttribute("aria-live", "polite");
      root.append(this.#button, this.#total);
    }

    connectedCallback() {
      this.#begin();
    }

    disconnectedCallback() {
      this.#end();
    }

    attributeChangedCallback(name, before, after) {
      if (!this.isConnected || before === after) return;
      if (name === "label" || name === "compact") return this.#show();
      this.#end();
      this.#begin();
    }

    #begin() {
      this.#item = this.getAttribute("item");
      this.#known = { liked: false };
      this.#wanted = undefined;
      this.#is("loading");
      if (!this.#item) return;
      const url = (name) => this.hasAttribute(name) && new URL(this.getAttribute(name), document.baseURI).href;
      const api = url("api");
      const base = api ? api.replace(/\/?$/, "/") : HERE;
      this.#hub = hubOf(base, url("token-src") || null, this.getAttribute("token"));
      this.#hub.add(this.#item, this);
    }

    // Whom it names, which counts where there is no token.
    get named() {
      return this.getAttribute("user");
    }

    #end() {
      this.#hub?.remove(this.#item, this);
      this.#hub = undefined;
    }

    // What the service says. What it says of a user counts where it says it.
    now({ total, liked = this.#known.liked, asOf = this.#known.asOf }, user = this.#known.user) {
      if (asOf < this.#known.asOf) return;
      this.#known = { total, liked, asOf, user };
      this.#is(this.#sending ? "busy" : "ready");
    }

    failed({ status = 0, error = "unreachable", detail, message }) {
      this.#is("error");
      this.#button.title = detail || message || error;
      this.#tell("headcount-error", { item: this.#item, status, error, detail: detail || message });
    }

    #clicked() {
      this.#wanted = !(this.#wanted ?? this.#known.liked);
      if (!this.#sending) this.#send();
    }

    // Sends what is wanted until that is so: who clicks again meanwhile wants something else.
    async #send() {
      const [hub, item] = [this.#hub, this.#item];
      const isHere = () => hub === this.#hub && item === this.#item;
      this.#sending = true;
      this.#is("busy");
      let failed;
      while (isHere() && this.#wanted !== undefined && this.#wanted !== this.#known.liked && !failed) {
        try {
          const user = await hub.user(this.named);
          const method = this.#wanted ? "PUT" : "DELETE";
          const response = await hub.call(method, `likes/${part(item)}/users/${part(user)}`);
          const { liked, changed } = await response.json();
          hub.each(item, (button) => button.#heard(liked, changed, user), user);
          this.#tell("headcount-change", { item, user, liked, total: this.#known.total });
          if (changed) hub.look(item).catch(() => {});
        } catch (error) {
          failed = error;
        }
      }
      this.#sending = false;
      if (!isHere()) return;
      this.#wanted = undefined;
      failed ? this.failed(failed) : this.#is("ready");
    }

    // The stream tells the true total a moment later.
    #heard(liked, changed, user) {
      const total = (this.#known.total ?? 0) + (changed ? (liked ? 1 : -1) : 0);
      this.now({ total: Math.max(total, 0), liked }, user);
    }

    #is(state) {
      this.setAttribute("state", state);
      if (state !== "error") this.#button.removeAttribute("title");
      this.#show();
    }

    #show() {
      const { liked, total, user } = this.#known;
      const shown = this.#wanted ?? liked;
      this.#button.setAttribute("aria-label", this.getAttribute("label") || "Like");
      this.#button.setAttribute("aria-pressed", String(shown));
      this.#button.setAttribute("aria-busy", String(this.#sending));
      this.#button.disabled = !user;
      const text = total === undefined ? "" : this.#format(Math.max(total + (shown - liked), 0));
      if (this.#total.textContent !== text) this.#total.textContent = text;
    }

    #format(total) {
      const notation = this.hasAttribute("compact") ? "compact" : "standard";
      const lang = this.closest("[lang]")?.lang || undefined;
      try {
        return new Intl.NumberFormat(lang, { notation }).format(total);
      } catch {
        return String(total);
      }
    }

    #tell(name, detail) {
      this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
    }
  }

  customElements.define("headcount-like", Like);
})();
