// Keeps an open page true: hears of each round, asks for the same page again, and renews what differs in place, so that
// focus, scrolling, selection and what is folded open stay. Without it the page is whole and is reloaded by hand.
"use strict";
(() => {
  const root = document.documentElement;
  const told = document.getElementById("stream");
  const APART_MS = 1000; // at least so long between two looks, however often something happens
  const RETRY_MS = 5000;
  let stream = null, isGone = false, goneAt = 0, retry = 0, isLooking = false, next = 0, lookedAt = 0, skewMs = 0;
  const words = document.title;
  let title = words;

  // --- times: the rules of spans.py ---
  function span(seconds, isFine) {
    const whole = Math.max(0, Math.trunc(seconds)), pad = (n) => String(n).padStart(2, "0");
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.trunc(whole / 60)} min` + (isFine && whole < 600 ? ` ${pad(whole % 60)} s` : "");
    if (whole < 86400) return `${Math.trunc(whole / 3600)} h ${pad(Math.trunc((whole % 3600) / 60))} min`;
    return `${Math.trunc(whole / 86400)} d ${Math.trunc((whole % 86400) / 3600)} h`;
  }
  const now = () => Date.now() + skewMs;
  const spoken = {
    ago: (seconds) => `${span(seconds)} ago`,
    lasting: (seconds) => `for ${span(seconds)}`,
    until: (seconds) => (-seconds >= 1 ? `in ${span(-seconds, true)}` : "now"),
  };
  function tick() {
    for (const time of document.querySelectorAll("time[data-as]")) {
      const then = Date.parse(time.dateTime);
      if (Number.isNaN(then) || !spoken[time.dataset.as]) continue;
      const text = spoken[time.dataset.as]((now() - then) / 1000);
      if (time.textContent !== text) time.textContent = text;
    }
    if (isGone) tell();
  }
  // The clock of the service counts: that of this machine may be wrong.
  function setClock(page) {
    const served = Date.parse(page.documentElement.dataset.now);
    if (!Number.isNaN(served)) skewMs = served - Date.now();
  }

  // --- what is told of the connection ---
  function tell() {
    const text = isGone
      ? `· no connection since ${new Date(goneAt).toISOString().slice(11, 19)}, for ${span((now() - goneAt) / 1000)}`
      : stream ? "live" : "· paused";
    if (told.textContent !== text) told.textContent = text;
    told.className = isGone ? "gone" : stream ? "live" : "";
    told.hidden = false;
    root.classList.toggle("lost", isGone);
    document.title = isGone ? `no connection · ${title}` : title;
  }
  function lose() {
    if (!isGone) goneAt = now();
    isGone = true;
    tell();
  }
  function found() {
    isGone = false;
    tell();
  }

  // --- the stream ---
  function listen() {
    clearTimeout(retry);
    if (stream || document.hidden) return;
    stream = new EventSource("/api/v1/events");
    // Something may have happened between the making of this page and the opening of the stream.
    stream.addEventListener("open", look);
    stream.addEventListener("round", look);
    stream.addEventListener("error", () => {
      lose();
      if (stream && stream.readyState === EventSource.CLOSED) {
        stream = null;
        retry = setTimeout(listen, RETRY_MS);
      }
    });
  }
  function pause() {
    clearTimeout(retry);
    if (stream) stream.close();
    stream = null;
  }
  function look() {
    clearTimeout(next);
    if (!isLooking) next = setTimeout(renewPage, Math.max(0, lookedAt + APART_MS - performance.now()));
    else next = setTimeout(look, APART_MS);
  }
  async function renewPage() {
    if (document.hidden) return;
    isLooking = true;
    lookedAt = performance.now();
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
      if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (scriptOf(page) !== scriptOf(document)) return location.reload(); // the service was renewed
      setClock(page);
      renewFrom(page);
      found();
    } catch {
      lose();
      clearTimeout(next);
      next = setTimeout(look, RETRY_MS);
    } finally {
      isLooking = false;
    }
  }
  const scriptOf = (page) => page.querySelector("script[src]")?.getAttribute("src");

  // --- renewing in place ---
  function renewFrom(page) {
    const focused = document.activeElement;
    for (const part of page.querySelectorAll("[data-live]")) {
      const old = document.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
      if (old) renew(old, document.importNode(part, true));
    }
    const icon = document.querySelector("link[rel=icon]"), newIcon = page.querySelector("link[rel=icon]");
    if (icon && newIcon && icon.getAttribute("href") !== newIcon.getAttribute("href")) icon.replaceWith(document.importNode(newIcon));
    title = page.title;
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
    tick();
  }
  function renew(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = fresh.data);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    renewChildren(old, fresh);
  }
  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);
  function renewChildren(old, fresh) {
    const keys = new Set([...fresh.children].map(keyOf)), byKey = new Map();
    for (const child of [...old.children]) {
      const key = keyOf(child);
      if (key === null) continue;
      if (keys.has(key) && !byKey.has(key)) byKey.set(key, child);
      else child.remove();
    }
    let at = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const key = keyOf(node), isLike = at && keyOf(at) === null && at.nodeName === node.nodeName;
      const match = key === null ? (isLike ? at : null) : byKey.get(key);
      if (match) byKey.delete(key);
      if (!match) old.insertBefore(node, at);
      else if (match !== at) old.insertBefore(match, at);
      else at = at.nextSibling;
      if (match) renew(match, node);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  // --- keys and copying ---
  function step(link, key) {
    const cell = link.closest("td, th"), row = link.closest("tr"), rows = [...link.closest("table").rows];
    const along = key === "ArrowLeft" || key === "ArrowRight", back = key === "ArrowLeft" || key === "ArrowUp";
    const line = along ? [...row.cells] : rows.map((other) => (other.cells.length === row.cells.length ? other.cells[cell.cellIndex] : null));
    const place = line.indexOf(cell), rest = back ? line.slice(0, place).reverse() : line.slice(place + 1);
    const target = rest.map((other) => other?.querySelector("a")).find(Boolean);
    target?.focus();
    target?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches("input, textarea, select");
    const filter = document.querySelector("[data-filter]");
    if (event.key === "/" && !isTyping && filter) {
      event.preventDefault();
      filter.focus();
      filter.select();
    } else if (event.key === "Escape" && isTyping) event.target.blur();
    else if (event.key.startsWith("Arrow") && event.target.matches(".matrix a")) {
      event.preventDefault();
      step(event.target, event.key);
    }
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector("code")); // no clipboard without https
    }
  });
  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest?.(".matrix td.ok:not(.sum)");
    if (!cell || cell.title) return;
    const head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
    cell.title = `${cell.parentElement.cells[0].title} in ${head.dataset.key}: ${cell.getAttribute("aria-label")}`;
  });
  // An address says only what was asked for.
  document.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return listen();
    pause();
    if (!isGone) tell();
  });
  addEventListener("pagehide", pause);
  addEventListener("pageshow", listen);

  root.classList.add("js");
  setClock(document);
  setInterval(() => document.hidden || tick(), 1000);
  tick();
  listen();
})();
