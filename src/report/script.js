"use strict";
// The page is readable without this script. It sorts and filters tables, highlights the lines of a trial, and keeps the scroll position across reloads.
const asNumber = (cell) => (cell.textContent === "" ? NaN : Number(cell.textContent.replaceAll(",", "").replace("%", "")));

function sortBy(table, column, button) {
  const head = button.closest("th");
  const isUp = head.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, number: asNumber(row.cells[column]), text: row.cells[column].textContent }));
  const compare = (a, b) => {
    if (a.text === "" || b.text === "") return (a.text === "") - (b.text === "");
    const by = Number.isNaN(a.number) || Number.isNaN(b.number) ? a.text.localeCompare(b.text, "en") : a.number - b.number;
    return isUp ? by : -by;
  };
  rows.sort(compare);
  body.append(...rows.map((entry) => entry.row));
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = cell.textContent;
    button.addEventListener("click", () => sortBy(table, column, button));
    cell.replaceChildren(button);
  });
}

function addFilter(table) {
  const label = document.createElement("label");
  label.className = "filter";
  const field = document.createElement("input");
  field.type = "search";
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(" ").filter(Boolean);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  label.append("Show rows that contain ", field);
  table.closest(".scroll").before(label);
}

function chooseTrials(table) {
  if (table.tHead.rows[0].cells[0].textContent !== "trial") return;
  table.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!row) return;
    const isChosen = row.classList.toggle("chosen");
    const trial = row.cells[0].textContent.replaceAll(",", "");
    for (const line of document.querySelectorAll(`[data-trial="${CSS.escape(trial)}"]`)) line.classList.toggle("chosen", isChosen);
  });
}

function keepScrollPosition(seconds) {
  const name = "poolcast-place";
  const details = () => [...document.querySelectorAll("details")];
  try {
    const kept = JSON.parse(sessionStorage.getItem(name) ?? "null");
    if (kept) {
      details().forEach((one, at) => { one.open = kept.open.includes(at); });
      scrollTo(0, kept.y);
    }
  } catch { /* no position was saved */ }
  setTimeout(() => {
    const open = details().flatMap((one, at) => (one.open ? [at] : []));
    try { sessionStorage.setItem(name, JSON.stringify({ y: scrollY, open })); } catch { /* the page reloads at its top */ }
    location.reload();
  }, 1000 * seconds);
}

for (const table of document.querySelectorAll("table.sortable")) {
  chooseTrials(table);
  addFilter(table);
  makeSortable(table);
}
const seconds = Number(document.body.dataset.reload);
if (seconds > 0) keepScrollPosition(seconds);
