// Opens pages of `poolcast report` in Chromium, and fails for anything that a user could not read.
//   node report.mjs DIRECTORY_FOR_SCREENSHOTS PAGE...
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.env.NODE_MODULES + "/"));
const puppeteer = require("puppeteer-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [pictures, ...pages] = process.argv.slice(2);
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const VIEWS = [
  { width: 1280, height: 900, scheme: "light" },
  { width: 1280, height: 900, scheme: "dark" },
  { width: 375, height: 812, scheme: "light" },
  { width: 375, height: 812, scheme: "dark" },
];
// Processor time of the thread of the page: the time until the page is loaded also depends on what else the machine does.
const MOST_LOAD_CPU_MS = 1500;
// A busy machine may need so long for one step.
const STEP_LIMIT_MS = 300000;
// Pages with ten thousand trials may take longer.
const LARGE_PAGE_BYTES = 1000000;
// Maximum rows of a table to check: axe takes minutes for ten thousand rows, which fill hundreds of printed pages. The other rows
// are similar.
const MOST_ROWS = 1000;
const faults = [];

// Runs in the page: finds clipped text, overlaps, and text without contrast to its background.
function findFaults() {
  const found = [];
  const round = (box) => [box.left, box.top, box.right, box.bottom].map(Math.round).join(" ");
  const rgb = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const background = rgb(getComputedStyle(document.body).backgroundColor);

  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const svg of document.querySelectorAll("figure > svg")) {
    const name = svg.querySelector("title").textContent;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((node) => ({ node, box: node.getBoundingClientRect() }));
    texts.forEach(({ node, box }, at) => {
      const isCut = box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.top < frame.top - 0.5 || box.bottom > frame.bottom + 0.5;
      if (isCut) found.push(`${name}: "${node.textContent}" is cut (${round(box)} in ${round(frame)})`);
      if (contrast(rgb(getComputedStyle(node).fill), background) < 4.5) found.push(`${name}: "${node.textContent}" is faint`);
      for (const other of texts.slice(at + 1)) {
        const overlaps = box.left < other.box.right - 1 && other.box.left < box.right - 1 && box.top < other.box.bottom - 2 && other.box.top < box.bottom - 2;
        if (overlaps) found.push(`${name}: "${node.textContent}" and "${other.node.textContent}" overlap`);
      }
      if (box.height < 9) found.push(`${name}: "${node.textContent}" is ${box.height.toFixed(1)} high`);
    });
    for (const path of svg.querySelectorAll("path:not(.grid)")) {
      const style = getComputedStyle(path);
      const colour = style.fill === "none" ? style.stroke : style.fill;
      // Bands and thin lines show the density of trials; the curves to read are drawn above them.
      const isBand = /^(b|thin)/.test(path.getAttribute("class"));
      if (!isBand && contrast(rgb(colour), background) < 3) found.push(`${name}: a ${path.getAttribute("class")} is faint`);
      if (/NaN|inf/i.test(path.getAttribute("d"))) found.push(`${name}: a path has no number`);
    }
  }
  for (const node of document.querySelectorAll("h1, h2, h3, p, dd, dt, li, pre, summary")) {
    const box = node.getBoundingClientRect();
    const isHidden = node.className === "skip" || box.width === 0;
    if (!isHidden && !node.closest(".scroll") && box.right > innerWidth + 1) found.push(`"${node.textContent.slice(0, 60)}" reaches ${Math.round(box.right)}`);
  }
  return found;
}

async function newPage(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(STEP_LIMIT_MS);
  return page;
}

async function openPage(browser, file, view, hears) {
  const page = await newPage(browser);
  page.on("request", (request) => hears.requests.push(request.url()));
  page.on("console", (message) => hears.messages.push(message.text()));
  page.on("pageerror", (error) => hears.messages.push(String(error)));
  await page.setViewport({ width: view.width, height: view.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
  const session = await page.createCDPSession();
  await session.send("Performance.enable");
  await page.goto(pathToFileURL(file), { waitUntil: "load" });
  const { metrics } = await session.send("Performance.getMetrics");
  hears.loadMs = 1000 * metrics.find((metric) => metric.name === "ThreadTime").value;
  return page;
}

const isLarge = (file) => statSync(file).size > LARGE_PAGE_BYTES;

// Removes all but MOST_ROWS rows of each table.
async function cutTables(page) {
  await page.evaluate((most) => {
    for (const body of document.querySelectorAll("tbody")) [...body.rows].slice(most).forEach((row) => row.remove());
  }, MOST_ROWS);
}

async function checkView(browser, file, view) {
  const name = `${basename(file, ".html")}-${view.width}-${view.scheme}`;
  const say = (fault) => faults.push(`${name}: ${fault}`);
  const hears = { requests: [], messages: [] };
  const page = await openPage(browser, file, view, hears);
  const { loadMs } = hears;
  if (hears.requests.length !== 1) say(`${hears.requests.length} requests: ${hears.requests.join(" ")}`);
  if (loadMs > MOST_LOAD_CPU_MS && !isLarge(file)) say(`it takes ${Math.round(loadMs)} ms of processor time to load`);

  (await page.evaluate(findFaults)).forEach(say);
  await cutTables(page);
  await page.evaluate(axeSource);
  const axe = await page.evaluate((rules) => window.axe.run(document, { runOnly: rules }), RULES);
  for (const violation of axe.violations) {
    say(`${violation.id}: ${violation.help}: ${violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }
  await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  hears.messages.forEach((message) => say(`console: ${message}`));
  await page.close();
  return { name, loadMs, checked: axe.passes.length };
}

// Checks that the keyboard alone sorts a table, and sorts it back.
async function checkKeyboard(browser, file) {
  const page = await openPage(browser, file, VIEWS[0], { requests: [], messages: [] });
  const button = await page.$("table.sortable th button");
  if (button) {
    const first = () => page.$eval("table.sortable tbody tr", (row) => row.cells[0].textContent);
    await button.focus();
    await page.keyboard.press("Enter");
    const lowest = await first();
    await page.keyboard.press("Enter");
    const highest = await first();
    const rows = await page.$$eval("table.sortable tbody tr", (all) => all.length);
    if (rows > 1 && lowest === highest) faults.push(`${file}: Enter does not sort`);
    await page.type(".filter input", "no such word at all");
    const shown = await page.$$eval("table.sortable tbody tr", (all) => all.filter((row) => !row.hidden).length);
    if (shown > 0) faults.push(`${file}: the filter shows ${shown} rows`);
  }
  await page.close();
}

// Checks that the tables of the page have the rounded numbers of the JSON document.
async function checkNumbers(browser, file) {
  const document = file.replace(/\.html$/, ".json");
  if (!existsSync(document)) return;
  const blocks = JSON.parse(readFileSync(document, "utf8")).parts.flatMap((part) => part.blocks);
  const wanted = blocks.flatMap((block) => (block.kind === "table" ? [block] : block.table?.rows.length ? [block.table] : []));
  const page = await newPage(browser);
  await page.setJavaScriptEnabled(false);
  await page.goto(pathToFileURL(file), { waitUntil: "load" });
  const found = await page.evaluate(() => [...document.querySelectorAll("table")].map((table) => ({
    title: table.caption.textContent,
    rows: [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
  })));
  await page.close();

  const isShown = (text, value) => {
    if (typeof value !== "number") return text === (value ?? "");
    const digits = text.includes("e") ? 0 : (text.split(".")[1] ?? "").length;
    const near = text.includes("e") ? Math.abs(value) / 100 : 0.5001 * 10 ** -digits;
    return text !== "" && Math.abs(Number(text.replaceAll(",", "")) - value) <= near;
  };
  let cells = 0;
  if (found.length !== wanted.length) faults.push(`${file}: ${found.length} tables, ${wanted.length} in the document`);
  for (const [at, table] of found.entries()) {
    const rows = wanted[at]?.rows ?? [];
    if (table.title !== wanted[at]?.title || table.rows.length !== rows.length) faults.push(`${file}: "${table.title}" is not that of the document`);
    for (const [row, texts] of table.rows.entries()) {
      for (const [column, text] of texts.entries()) {
        cells += 1;
        if (!isShown(text, rows[row]?.[column])) faults.push(`${file}: "${table.title}" says ${text}, the document ${rows[row]?.[column]}`);
      }
    }
  }
  console.log(`${basename(file)}: ${cells} cells are those of the document`);
}

// Checks that nothing is missing without JavaScript and in print.
async function checkPlain(browser, file) {
  const page = await newPage(browser);
  await page.setJavaScriptEnabled(false);
  await page.goto(pathToFileURL(file), { waitUntil: "load" });
  const plain = await page.evaluate(() => document.querySelectorAll("tr").length);
  const written = readFileSync(file, "utf8").split("<tr>").length - 1;
  if (plain !== written) faults.push(`${file}: ${plain} rows without JavaScript, ${written} written`);
  await cutTables(page);
  const paper = await page.pdf({ format: "A4" });
  if (paper.length < 10000) faults.push(`${file}: printed it has ${paper.length} bytes`);
  writeFileSync(`${pictures}/${basename(file, ".html")}.pdf`, paper);
  await page.close();
}

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu"],
  timeout: STEP_LIMIT_MS,
  protocolTimeout: STEP_LIMIT_MS,
});
for (const file of pages) {
  for (const view of VIEWS) {
    const { name, loadMs, checked } = await checkView(browser, file, view);
    console.log(`${name}: ${checked} rules of axe hold, loaded in ${Math.round(loadMs)} ms of processor time`);
  }
  await checkKeyboard(browser, file);
  await checkNumbers(browser, file);
  await checkPlain(browser, file);
}
await browser.close();
for (const fault of faults) console.error(`fault: ${fault}`);
console.log(`${faults.length} faults in ${pages.length} pages`);
process.exit(faults.length > 0 ? 1 : 0);
