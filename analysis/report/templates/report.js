"use strict";
// Columns sort by their buttons; long tables filter.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.sort === undefined ? cell.textContent : cell.dataset.sort;
      };
      const number = head.classList.contains("number");
      const body = table.tBodies[0];
      const compare = (a, b) => {
        const x = value(a), y = value(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = number ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true });
        return up ? order : -order;
      };
      [...body.rows].sort(compare).forEach((row) => body.append(row));
    });
  });
}
for (const box of document.querySelectorAll(".tall")) {
  const table = box.querySelector("table");
  if (!table) continue;
  const rows = [...table.tBodies[0].rows];
  const field = document.createElement("input");
  const count = document.createElement("span");
  const line = document.createElement("div");
  line.className = "filter";
  field.type = "search";
  field.placeholder = "filter rows";
  field.setAttribute("aria-label", "Filter " + (table.getAttribute("aria-label") || "rows"));
  count.className = "soft";
  count.setAttribute("role", "status");
  const say = (shown) => { count.textContent = shown + " of " + rows.length + " rows"; };
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    say(shown);
  });
  say(rows.length);
  line.append(field, count);
  box.before(line);
}
