"use strict";
// Moves what the page has drawn already: a moment of the run, a part of it, a module.
// Texts go into the page as text only.
(() => {
  const KIB = 1024, MIB = 1024 ** 2, GIB = 1024 ** 3;
  const size = (bytes) => {
    const [unit, name] = bytes >= GIB ? [GIB, "GiB"] : [MIB, "MiB"];
    if (bytes < MIB) return `${Math.ceil(bytes / KIB)} KiB`;
    const text = (Math.ceil((bytes * 10) / unit) / 10).toLocaleString("en-US", { minimumFractionDigits: 1 });
    return `${text} ${name}`;
  };
  const summed = (column) => {
    let total = 0;
    return column.map((more) => (total += more));
  };
  const percent = (share) => `${(100 * share).toFixed(4)}%`;

  // Lays what carries data-at (and data-width) out anew, so that from..to fills the width.
  const show = (figure, from, to) => {
    for (const each of figure.querySelectorAll("[data-at]")) {
      const at = percent((each.dataset.at - from) / (to - from));
      if (each.tagName === "circle") each.setAttribute("cx", at);
      else each.setAttribute("x", at);
      if (each.dataset.width) {
        each.setAttribute("width", percent(each.dataset.width / (to - from)));
      }
    }
  };

  for (const figure of document.querySelectorAll("figure.run")) {
    const found = JSON.parse(figure.querySelector("script").textContent);
    const events = summed(found.at), reserved = summed(found.reserved);
    const live = found.live.map(summed);
    if (!events.length) continue;
    const plot = figure.querySelector(".plot"), cursor = plot.querySelector(".cursor");
    const range = figure.querySelector("input"), at = figure.querySelector(".at");
    const chart = figure.querySelector(".chart");
    let [from, to] = [0, 1];

    const tell = (index) => {
      const [step, phase, operator, module] = found.moments[found.places[index]];
      const words = [step ? `step ${step}` : "", phase, found.texts[operator]].filter(Boolean);
      const where = words.join(", ") + (found.texts[module] ? ` in ${found.texts[module]}` : "");
      const used = live.reduce((sum, column) => sum + column[index], 0);
      const whole = found.beside + found.communication + reserved[index];
      const [head, rest] = at.children;
      head.textContent = index === found.peak ? "At the peak: " : "There: ";
      rest.textContent =
        `${where}. Allocated ${size(used * KIB)}, reserved ${size(reserved[index] * KIB)}, ` +
        `on the card ${size(whole * KIB)}.`;
      const parts = { beside: found.beside, cached: reserved[index] - used };
      found.roles.forEach((role, column) => (parts[role] = live[column][index]));
      parts.communication = (parts.communication || 0) + found.communication;
      for (const each of figure.querySelectorAll("[data-part]")) {
        each.textContent = size(parts[each.dataset.part] * KIB);
      }
      cursor.setAttribute("x1", events[index]);
      cursor.setAttribute("x2", events[index]);
      range.value = index;
      range.setAttribute("aria-valuetext", rest.textContent);
    };
    const nearest = (event) => {
      let low = 0, high = events.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (events[middle] <= event) low = middle;
        else high = middle - 1;
      }
      return low;
    };
    const point = (pointer) => {
      const box = chart.getBoundingClientRect();
      const share = from + ((pointer.clientX - box.left) / box.width) * (to - from);
      plot.classList.add("live");
      tell(nearest(share * found.wide));
    };
    chart.addEventListener("pointermove", point);
    chart.addEventListener("pointerdown", point);
    range.addEventListener("input", () => {
      plot.classList.add("live");
      tell(Number(range.value));
    });
    const buttons = figure.querySelectorAll("button");
    for (const button of buttons) {
      button.addEventListener("click", () => {
        [from, to] = [Number(button.dataset.from), Number(button.dataset.to)];
        const [left, wide] = [from * found.wide, (to - from) * found.wide];
        plot.setAttribute("viewBox", `${left} 0 ${wide} 10000`);
        show(chart, from, to);
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      });
    }
    figure.querySelector(".controls").hidden = false;
    range.parentElement.hidden = false;
    tell(found.peak);
  }

  for (const figure of document.querySelectorAll("figure.tree")) {
    const items = [...figure.querySelectorAll("g")], path = figure.querySelector(".path");
    const level = (item) => Number(item.getAttribute("aria-level"));
    const start = (item) => Number(item.dataset.at);
    const width = (item) => Number(item.dataset.width);
    const inside = (item, other) => {
      const middle = start(item) + width(item) / 2;
      return middle > start(other) && middle < start(other) + width(other);
    };
    const parent = (item) =>
      items.find((other) => level(other) === level(item) - 1 && inside(item, other));
    const child = (item) =>
      items.find((other) => level(other) === level(item) + 1 && inside(other, item));
    const beside = (item, way) => {
      const row = items.filter((other) => level(other) === level(item));
      return row[row.indexOf(item) + way];
    };
    const open = (item) => {
      const [from, wide] = [start(item), width(item)];
      for (const other of items) {
        const svg = other.querySelector("svg");
        const isAbove = level(other) <= level(item) && inside(item, other);
        const share = isAbove ? 1 : width(other) / wide;
        svg.setAttribute("x", isAbove ? "0%" : percent((start(other) - from) / wide));
        svg.setAttribute("width", percent(share));
        other.setAttribute("class", share < 0.035 ? "narrow" : share < 0.16 ? "slim" : "wide");
      }
      tell(item);
    };
    const tell = (item) => {
      path.textContent = item.querySelector("title").textContent;
    };
    const go = (item) => {
      if (!item) return;
      for (const other of items) other.setAttribute("tabindex", other === item ? "0" : "-1");
      item.focus();
      tell(item);
    };
    path.hidden = false;
    for (const item of items) {
      item.addEventListener("click", () => {
        go(item);
        open(item);
      });
      item.addEventListener("pointerenter", () => tell(item));
      item.addEventListener("keydown", (pressed) => {
        const moves = {
          ArrowDown: () => go(child(item)),
          ArrowUp: () => go(parent(item)),
          ArrowLeft: () => go(beside(item, -1)),
          ArrowRight: () => go(beside(item, 1)),
          Home: () => go(items[0]),
          Enter: () => open(item),
          " ": () => open(item),
          Escape: () => open(items[0]),
        };
        if (!moves[pressed.key]) return;
        moves[pressed.key]();
        pressed.preventDefault();
      });
    }
  }

  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
})();
