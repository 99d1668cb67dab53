// Filters of the matrix, and the dialog in which a cell tells what it was derived from. Texts reach the page as text alone.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const text = (place) => data.texts[place];
  const $ = (id) => document.getElementById(id);

  /** An element with attributes and children; strings become text. */
  const make = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children.flat());
    return made;
  };
  /** A sentence: its names as code, as reports/code_names.h finds them. */
  const say = (sentence) => sentence.split(/(?<!`)`([^`"]+)`(?!`)/).map((part, i) => i % 2 ? make("code", {}, part) : part);
  const draw = (name, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // The matrix.
  const table = $("matrix");
  const only = $("only"), search = $("search"), status = $("status"), shown = $("shown");
  const columns = [...document.querySelectorAll("#columns input")];
  let rows = null;

  /** What a search looks at: the case, the value and the cells, once. */
  const read = () => {
    rows = [];
    for (const body of table.tBodies) {
      const [head, ...values] = body.rows;
      for (const row of values)
        rows.push({body, row, same: row.classList.contains("same"), has: (head.textContent + " " + row.textContent).toLowerCase()});
    }
  };

  /** Rows that are the same everywhere are hidden by the style, from the start: no row is touched before somebody searches. */
  const filter = () => {
    table.classList.toggle("only", only.checked);
    if (!rows && !search.value && !status.value) {
      const all = table.querySelectorAll("tbody tr:not(.c)").length;
      const same = only.checked ? table.querySelectorAll("tbody tr.same").length : 0;
      shown.textContent = all - same + " of " + all + " rows";
      return;
    }
    if (!rows) read();
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const tone = {parts: "td.d", fails: "td.f"}[status.value];
    const bodies = new Map();
    let count = 0;
    for (const entry of rows) {
      const wanted = !(only.checked && entry.same) && words.every((word) => entry.has.includes(word)) &&
          (!tone || entry.row.querySelector(tone) !== null);
      entry.row.hidden = !wanted;
      count += wanted;
      bodies.set(entry.body, (bodies.get(entry.body) || false) || wanted);
    }
    for (const [body, wanted] of bodies) body.hidden = !wanted;
    shown.textContent = count + " of " + rows.length + " rows";
  };

  const hideColumns = () => {
    const hidden = columns.map((box, i) => (box.checked ? "" : "#matrix tr:not(.c)>:nth-child(" + (i + 2) + ")"));
    $("hidden").textContent = hidden.filter(Boolean).map((rule) => rule + "{display:none}").join("");
  };

  /** Arrows go from cell to cell, past those that open nothing. */
  const walk = (event) => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    const cell = step && event.target.closest("td");
    if (!cell) return;
    const all = [...table.rows].filter((row) => row.offsetParent !== null);
    let y = all.indexOf(cell.parentNode), x = cell.cellIndex;
    for (;;) {
      y += step[0];
      x += step[1];
      const next = all[y] && (step[0] ? all[y].cells[x] || null : all[y].cells[x]);
      if (next === undefined || !all[y]) return;
      const link = next && next.offsetParent !== null && next.querySelector("a");
      if (!link) continue;
      event.preventDefault();
      link.focus();
      return;
    }
  };

  // The dialog.
  const dialog = $("cell"), place = $("cell-body");
  const codes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  /** Errors of one value as bars from the lowest to the highest; see html_details.h for the codes. */
  const plot = ([name, elements, looked, bars, most]) => {
    const width = 640, height = 150, left = 60, step = (width - left - 10) / (bars.length / 2);
    const y = (code) => height / 2 - code * (height / 2 - 10) / 32;
    let path = "", lost = "";
    for (let i = 0; i < bars.length; i += 2) {
      const x = (left + (i / 2 + .5) * step).toFixed(1);
      const low = codes.indexOf(bars[i]) - 32, high = codes.indexOf(bars[i + 1]) - 32;
      if (bars[i] === "~") {
        lost += "M" + x + " 8V" + (height - 8);
        continue;
      }
      path += "M" + x + " " + (y(high) - 1).toFixed(1) + "V" + (y(low) + 1).toFixed(1);
    }
    const ticks = [0, .5, 16, 1024, 65536].flatMap((ulp) => (ulp ? [ulp, -ulp] : [0]));
    const about = name + ": error of " + looked + " of " + elements + " elements" +
        (most ? "; the largest is " + most + " ulp" : "") + (lost ? "; some are not finite" : "");
    return make("figure", {style: "margin:.25rem 0"},
        draw("svg", {viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": about},
            ...ticks.flatMap((ulp) => {
              const at = y(Math.sign(ulp) * 1.55 * Math.log2(1 + 4 * Math.abs(ulp)));
              const line = draw("path", {class: ulp ? "axis" : "zero", d: "M" + left + " " + at + "H" + width});
              return ulp === .5 || ulp === -.5 ? [line] : [line, draw("text", {x: 4, y: at + 4}, String(ulp))];
            }),
            draw("path", {class: "bars", "stroke-width": Math.max(1, step - 1).toFixed(1), d: path}),
            draw("path", {class: "lost", d: lost})),
        make("figcaption", {class: "soft"}, about + ", against the exact value of the whole program; lines at 0, 0.5, 16, 1024 and 65536 ulp"));
  };

  const rowsOf = (head, lines) => make("div", {class: "wrap", tabindex: "0", role: "group", "aria-label": head.join(", ")},
      make("table", {}, make("thead", {}, make("tr", {}, head.map((name) => make("th", {scope: "col"}, name)))),
          make("tbody", {}, lines.map((line) => make("tr", {}, line.map((cell, i) => make(i ? "td" : "th", i ? {} : {scope: "row"}, cell)))))));

  const block = (label, lines) => make("pre", {tabindex: "0", role: "group", "aria-label": label},
      lines.flatMap(([line, mark]) => [mark ? make("span", {class: mark}, line) : line, "\n"]));

  const show = (number) => {
    const [of, backend, state, reason, outcome, repro, values, proof, knobs, finds, notes, trace, errors] = data.cells[number];
    const [id, about, tensors, program, origins] = data.cases[of];
    const parts = finds.map((find) => data.finds[find]);
    const out = [];
    const section = (title, ...children) => children.length && out.push(make("h3", {}, title), ...children);
    out.push(make("p", {}, text(state) + (text(reason) ? ": " : ""), say(text(reason))));
    if (text(outcome)) out.push(make("p", {}, text(outcome)));
    if (proof.length) section("Derivation", make("p", {class: "said"}, text(proof[0])), make("p", {class: "said"}, text(proof[1])));
    section("Where it parts", ...parts.map(([kind, basis, subject, , sentence]) =>
      make("p", {class: "said"}, make("strong", {}, text(kind)), " " + text(subject) + " (" + text(basis) + "): ", say(text(sentence)))));
    if (values.length)
      section("Values", rowsOf(["value", "class", "what it is", "error", "contract"], values.map(
          ([name, shape, cell, label, error, contract, says]) => [text(name) + " " + text(shape), text(cell),
            say([text(label), ...says.map(text)].filter(Boolean).join("; ")), text(error), text(contract)])));
    section("Errors in ulp", ...errors.map(([name, ...rest]) => plot([text(name), ...rest.slice(0, -1), text(rest.at(-1))])));
    const seams = parts.map((part) => text(part[3])).filter(Boolean);
    const line = (step, i) => {
      const here = seams.some((value) => text(step).includes("as: " + value + ",") || text(step).includes("as: " + value + "}"));
      const origin = i < origins.length ? text(origins[i]) : "";
      return [text(step) + (origin ? "   " + origin : "") + (here ? "   <- here they part" : ""), here ? "here" : ""];
    };
    if (program.length)
      section("Program", make("p", {class: "soft"}, [text(about), text(tensors)].filter(Boolean).join(" - ")), block("program", program.map(line)));
    if (knobs.length)
      section("Knobs", rowsOf(["knob", "asked", "effective"], knobs.map(
          ([knob, asked, effective]) => [text(knob), text(asked) || "not asked", text(effective) || "not read back"])));
    if (trace)
      section("Ops and conversions", block("ops and conversions", trace.map((each) => [text(each), text(each).startsWith("    >") ? "cast" : ""])));
    section("Notes", ...notes.map((note) => make("p", {}, text(note))));
    const command = text(repro).replaceAll("\ue000", text(id)).replaceAll("\ue001", text(backend));
    section("Run it again", block("command that repeats it", [[command, ""]]));
    $("cell-title").textContent = text(id) + " on " + text(backend);
    place.replaceChildren(...out);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };

  const follow = () => {
    const found = /^#c(\d+)$/.exec(location.hash);
    if (found && data.cells[found[1]]) show(Number(found[1]));
  };
  dialog.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
  $("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    if (!link) return;
    if (/^#c\d+$/.test(link.hash)) {
      event.preventDefault();
      history.replaceState(null, "", link.hash);
      follow();
    } else if (/^#r\d+$/.test(link.hash)) {  // a case that a filter hides is shown again
      search.value = "";
      status.value = "";
      filter();
      const body = document.querySelector(link.hash).closest("tbody");
      if (body.hidden) {
        only.checked = false;
        filter();
      }
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || dialog.open || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
  });
  if (table) {
    let waiting = false;
    const soon = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        filter();
      });
    };
    for (const box of [only, status]) box.addEventListener("change", soon);
    search.addEventListener("input", soon);
    columns.forEach((box) => box.addEventListener("change", hideColumns));
    table.addEventListener("keydown", walk);
    document.querySelector(".filters").hidden = false;
    filter();
  }
  follow();
})();
