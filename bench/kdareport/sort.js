"use strict";
// Sorts a table by the column whose head is pressed; again: the other way round. Numbers before text, empty last.
(function () {
  function value(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent.trim();
    const number = text === "" ? NaN : text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
    return { text: text, number: number };
  }
  function compare(a, b) {
    if (a.text === "" || b.text === "") return NaN;
    const numbers = !Number.isNaN(a.number) + !Number.isNaN(b.number);
    if (numbers === 2) return a.number === b.number ? 0 : a.number < b.number ? -1 : 1;
    if (numbers === 1) return Number.isNaN(a.number) ? 1 : -1;
    return a.text.localeCompare(b.text, "en", { numeric: true });
  }
  document.querySelectorAll("thead th button").forEach(function (button) {
    button.addEventListener("click", function () {
      const head = button.parentElement, table = head.closest("table"), body = table.tBodies[0];
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows).map(function (row) { return { row: row, key: value(row, head.cellIndex) }; });
      rows.sort(function (x, y) {
        const order = compare(x.key, y.key);
        if (Number.isNaN(order)) return (x.key.text === "") - (y.key.text === "");
        return down ? -order : order;
      });
      rows.forEach(function (entry) { body.appendChild(entry.row); });
    });
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details.failure").forEach(function (details) { details.open = true; });
  });
})();
