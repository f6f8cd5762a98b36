"use strict";
// Columns sort by their buttons; a link to a record opens it.
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
const open = () => {
  const wanted = location.hash && document.getElementById(location.hash.slice(1));
  if (wanted && wanted.tagName === "DETAILS") wanted.open = true;
};
addEventListener("hashchange", open);
open();
