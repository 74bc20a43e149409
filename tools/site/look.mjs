// The built site in a real browser: every page, at two widths, as a reader gets it.
//
//     npm install --prefix FOLDER playwright-core
//     node tools/site/look.mjs --modules FOLDER/node_modules [--site docs/_build/html]
//         [--shots FOLDER] [--dark] [--only WORD] [--chromium /usr/bin/chromium]
//
// Prints a table of what is wrong and ends with 1 if anything is: a page wider than its
// window, a file that is missing or comes from another host, an error in the console, a
// picture without pixels, a page with no title of its own or with two, a link or an anchor
// that leads nowhere, or a search of searches.json that does not find its page first. With
// --shots a picture of each page goes to FOLDER/390 (a telephone) and FOLDER/1280, with
// --dark of its dark version.
import { createServer } from "node:http";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";

const text = { type: "string" };
const { values: options } = parseArgs({
  options: {
    site: { ...text, default: "docs/_build/html" },
    chromium: { ...text, default: "/usr/bin/chromium" },
    modules: { ...text, default: "node_modules" },
    shots: text,
    only: { ...text, default: "" },
    dark: { type: "boolean", default: false },
  },
});
const { chromium } = createRequire(resolve(options.modules, "x.js"))("playwright-core");
const site = resolve(options.site);
const WIDTHS = [390, 1280];
const PATIENCE = 300_000; // milliseconds, so that only a page that hangs is late
// as root in a container, and without the browser's own calls to its maker
const FLAGS = `--no-sandbox --disable-gpu --disable-quic --no-first-run
  --disable-background-networking --disable-component-update --disable-sync`.split(/\s+/);
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

function pages(folder = site) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name.startsWith("_") ? [] : pages(path);
    return entry.name.endsWith(".html") ? [relative(site, path)] : [];
  });
}

function serve() {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://x").pathname);
    try {
      const body = readFileSync(join(site, path.endsWith("/") ? path + "index.html" : path));
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

// what a page says of itself, asked inside of it
const inspect = (width) => ({
  // the theme lets the column of text scroll, so that the page itself is never too wide
  overflow: Math.max(
    document.documentElement.scrollWidth - width,
    ...[...document.querySelectorAll(".bd-article-container, .bd-article")].map(
      (column) => column.scrollWidth - column.clientWidth,
    ),
  ),
  titles: document.querySelectorAll("h1").length,
  blind: [...document.images]
    .filter((image) => !image.complete || image.naturalWidth === 0)
    .map((image) => image.src),
  unnamed: [...document.querySelectorAll("article img")]
    .filter((image) => !image.hasAttribute("alt"))
    .map((image) => image.src),
  ids: [...document.querySelectorAll("[id]")].map((element) => element.id),
  links: [...document.querySelectorAll("a[href]")]
    .map((link) => link.href)
    .filter((href) => href.startsWith(location.origin)),
  widest: [...document.querySelectorAll("article *")]
    .filter((e) => {
      const column = e.closest(".bd-article-container").getBoundingClientRect();
      return e.getBoundingClientRect().right > column.right + 1;
    })
    .filter((e) => !e.closest("pre, .pst-scrollable-table-container, .scrolls"))
    .slice(0, 2)
    .map((e) => `${e.tagName}.${e.className}`),
});

// faults of the page that a tab shows at the time go to `now.fault`
function listen(tab, origin, now) {
  tab.on("console", (message) => message.type() === "error" && now.fault(message.text()));
  tab.on("pageerror", (error) => now.fault(String(error)));
  tab.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:")) now.fault(`asks ${url}`);
  });
  tab.on("response", (r) => r.status() >= 400 && now.fault(`${r.status()} ${r.url()}`));
}

async function look(tab, origin, page, width, fault) {
  await tab.goto(`${origin}/${page}`, { waitUntil: "load" });
  await tab.evaluate(() => document.querySelectorAll("img").forEach((i) => (i.loading = "eager")));
  await tab.waitForFunction(() => [...document.images].every((image) => image.complete));
  const found = await tab.evaluate(inspect, width);
  if (found.overflow > 0) fault(`${found.overflow} px too wide: ${found.widest.join(", ")}`);
  if (found.titles !== 1) fault(`${found.titles} titles`);
  found.blind.forEach((src) => fault(`no picture ${src}`));
  found.unnamed.forEach((src) => fault(`no words for ${src}`));
  if (options.shots) {
    const path = join(options.shots, String(width), page.replaceAll("/", "__") + ".png");
    mkdirSync(dirname(path), { recursive: true });
    await tab.screenshot({ path, fullPage: true });
  }
  return found;
}

// every address within the site exists, and so does the anchor in it
function checkLinks(origin, seen, faults) {
  for (const [page, found] of seen) {
    for (const href of new Set(found.links)) {
      const url = new URL(href);
      const target = decodeURIComponent(url.pathname).slice(1) || "index.html";
      const anchor = decodeURIComponent(url.hash.slice(1));
      if (seen.has(target)) {
        if (anchor && !seen.get(target).ids.includes(anchor))
          faults.push([page, "", `no anchor ${target}#${anchor}`]);
      } else if (!options.only) {
        try {
          readFileSync(join(site, target));
        } catch {
          faults.push([page, "", `no page ${target}`]);
        }
      }
    }
  }
}

// every search of searches.json finds its page first
async function search(context, origin, faults) {
  const path = join(import.meta.dirname, "searches.json");
  const tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE);
  for (const [query, page] of Object.entries(JSON.parse(readFileSync(path, "utf8")))) {
    await tab.goto(`${origin}/search.html?q=${encodeURIComponent(query)}`);
    // the list is complete when its summary says how many it has
    await tab.locator(".search-summary", { hasText: /found|match/ }).waitFor();
    const first = tab.locator("#search-results li a").first();
    const href = await first.getAttribute("href", { timeout: 5000 }).catch(() => "nothing");
    if (href.split(/[.#]html|[?#]/)[0].replace(/\.html$/, "") !== page)
      faults.push(["search.html", query, `finds ${href} first, not ${page}`]);
  }
  await tab.close();
}

const server = await serve();
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: options.chromium, args: FLAGS });
const faults = [];
const seen = new Map();
const all = pages().filter((page) => page.includes(options.only)).sort();
try {
  for (const width of WIDTHS) {
    const context = await browser.newContext({
      viewport: { width, height: width < 600 ? 844 : 800 },
      isMobile: width < 600,
      colorScheme: options.dark ? "dark" : "light",
    });
    const tab = await context.newPage();
    tab.setDefaultTimeout(PATIENCE);
    const now = {};
    listen(tab, origin, now);
    for (const page of all) {
      now.fault = (what) => faults.push([page, width, what]);
      seen.set(page, await look(tab, origin, page, width, now.fault));
    }
    if (width === WIDTHS.at(-1) && "search.html".includes(options.only))
      await search(context, origin, faults);
    await context.close();
  }
  checkLinks(origin, seen, faults);
} finally {
  await browser.close();
  server.close();
}
console.log(`${all.length} pages at ${WIDTHS.join(" and ")} px: ${faults.length} faults`);
for (const fault of faults) console.log(fault.join(" | "));
process.exitCode = faults.length ? 1 : 0;
