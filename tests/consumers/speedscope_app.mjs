#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// speedscope_app.mjs [OPTION]... FILE...: opens a document (of any format that speedscope imports) in the packaged
// speedscope app in headless Chromium, and prints as JSON what the app then has and shows. Exit 1 when the app
// reports an error in whatever way, logs one, or asks for anything that is not on localhost; exit 2 for a wrong command line.
//   --each             details of each profile, not only of the active one
//   --top N            frames in the lists of details (default 20)
//   --screenshot FILE  a PNG of --view time-ordered, left-heavy or sandwich, with --size WxH (1200x800)
//   --beside           what it prints goes to FILE.app, and the PNG to FILE.png, whatever it is called: for several files, which
//                      are opened one after another in one browser, each in a page and with a profile of its own
//   --timeout SECONDS  for the import (default 60)
// Weights are the app's own integers. They are read from the properties of its top component; "table" is the text of the
// sandwich view's list. CONSUMERS is the folder with node_modules (build/consumers), CHROMIUM the browser if not in PATH.
import { accessSync, constants, createReadStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, delimiter, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const consumers = process.env.CONSUMERS || fileURLToPath(new URL('../../build/consumers', import.meta.url));
const require = createRequire(`${consumers}/`);

const VIEWS = ['time-ordered', 'left-heavy', 'sandwich']; // as the app numbers them
const CONTENT_TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };

// Nothing of this is for a browser without a network, but Chromium asks for all kinds of things when it starts.
const CHROMIUM_FLAGS = [
    '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--disable-gpu', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
    '--force-color-profile=srgb',
];

function usage(text) {
    console.error(`speedscope_app: ${text}\nusage: speedscope_app.mjs [--each] [--top N] [--screenshot FILE --view VIEW` +
        ' --size WxH] [--timeout SECONDS] FILE | --beside FILE...');
    process.exit(2);
}

function parseOptions(args) {
    const o = { files: [], beside: false, each: false, top: 20, screenshot: null, view: 'time-ordered', size: [1200, 800], timeoutMs: 60000 };
    for (let i = 0; i < args.length; i++) {
        const value = () => args[++i] ?? usage(`${args[i - 1]} needs a value`);
        if (args[i] === '--each') o.each = true;
        else if (args[i] === '--beside') o.beside = true;
        else if (args[i] === '--top') o.top = Number(value());
        else if (args[i] === '--screenshot') o.screenshot = value();
        else if (args[i] === '--view') o.view = value();
        else if (args[i] === '--size') o.size = value().split('x').map(Number);
        else if (args[i] === '--timeout') o.timeoutMs = 1000 * Number(value());
        else if (args[i].startsWith('--')) usage(`unknown option ${args[i]}`);
        else o.files.push(args[i]);
    }
    if (o.files.length === 0) usage('no file');
    if (o.files.length > 1 && !o.beside) usage('more than one file');
    if (!VIEWS.includes(o.view)) usage(`no view ${o.view}`);
    if (o.size.length !== 2 || !o.size.every((n) => n > 0)) usage('--size is WIDTHxHEIGHT');
    if (!(o.timeoutMs > 0) || !(o.top >= 0)) usage('not a number');
    return o;
}

function findChromium() {
    const names = process.env.CHROMIUM ? [process.env.CHROMIUM] : ['chromium', 'chromium-browser', 'google-chrome'];
    for (const name of names)
        for (const folder of name.includes('/') ? [''] : process.env.PATH.split(delimiter))
            try {
                accessSync(join(folder, name), constants.X_OK);
                return join(folder, name);
            } catch {
                continue;
            }
    throw new Error('no Chromium in PATH (scripts/deps consumers)');
}

// The app from / and the document from /document/NAME, for which the app takes the name.
async function serve(file) {
    const release = join(consumers, 'node_modules/speedscope/dist/release');
    const server = createServer((request, response) => {
        const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
        const source = path.startsWith('/document/') ? file : join(release, path === '/' ? 'index.html' : basename(path));
        try {
            statSync(source);
        } catch {
            response.writeHead(404).end();
            return;
        }
        response.writeHead(200, { 'content-type': CONTENT_TYPES[extname(source)] ?? 'application/octet-stream' });
        createReadStream(source).pipe(response);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

// ---- in the page ----

// The app is rendered by Preact in place of its own script element, which is gone from the document then. It is
// what knows the tree of components: their children are in __k and their properties in props.
function keepScripts() {
    window.keptScripts = [];
    new MutationObserver((changes) => {
        for (const change of changes)
            for (const node of change.addedNodes) if (node.tagName === 'SCRIPT') window.keptScripts.push(node);
    }).observe(document, { childList: true, subtree: true });

    window.appProps = () => {
        const queue = [document.body, ...window.keptScripts].map((element) => element.__k).filter(Boolean);
        for (const node of queue) {
            if (node.props && 'setProfileGroup' in node.props) return node.props;
            queue.push(...(node.__k ?? []).filter(Boolean));
        }
        return null;
    };
    // The groups' state outlives a render: what was imported, or why not.
    window.importState = () => {
        const props = window.appProps();
        if (props === null) return null;
        if (props.error) return 'error';
        return !props.loading && props.profileGroup ? 'imported' : null;
    };
}

function describeGroup() {
    const { profileGroup } = window.appProps();
    return {
        name: profileGroup.name,
        activeProfile: profileGroup.indexToView,
        profiles: profileGroup.profiles.map(({ profile }, index) => ({
            index,
            name: profile.getName(),
            unit: profile.getWeightUnit(),
            totalWeight: profile.getTotalWeight(),
            busyWeight: profile.getTotalNonIdleWeight(),
        })),
    };
}

// What is beyond the summary, of the profile that is shown in the sandwich view.
function describeShown(top) {
    const { profileGroup } = window.appProps();
    const { profile } = profileGroup.profiles[profileGroup.indexToView];
    const frames = [];
    profile.forEachFrame((frame) =>
        frames.push({
            name: frame.name, file: frame.file, line: frame.line,
            self: frame.getSelfWeight(), total: frame.getTotalWeight(),
        }));
    const by = (key) => [...frames].sort((a, b) => b[key] - a[key]).slice(0, top);
    const depthOf = () => {
        let depth = -1;
        let level = [profile.getGroupedCalltreeRoot()];
        for (; level.length > 0; depth++) level = level.flatMap((node) => node.children);
        return depth;
    };
    // The list's head is a table of its own, beside that of the visible rows.
    const head = [...document.querySelectorAll('th')].find((cell) => cell.textContent === 'Symbol Name');
    const rows = [...head.closest('table').parentElement.querySelectorAll('tr')];
    return {
        roots: profile.getGroupedCalltreeRoot().children.map((node) => ({
            name: node.frame.name, weight: node.getTotalWeight(),
        })),
        frameCount: frames.length,
        maxDepth: depthOf(),
        bySelf: by('self'),
        byTotal: by('total'),
        table: rows
            .map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))
            .filter((cells) => cells.length > 0)
            .slice(0, top)
            .map((cells) => (cells.length === 3 ? { total: cells[0], self: cells[1], name: cells[2] } : { text: cells.join(' ') })),
    };
}

// ---- from outside ----

// Whatever could tell of an error goes to errors.
function listen(page, origin, errors) {
    page.on('dialog', (dialog) => {
        errors.push(`dialog: ${dialog.message()}`);
        dialog.dismiss().catch(() => {});
    });
    page.on('pageerror', (error) => errors.push(`exception: ${error.message}`));
    page.on('crash', () => errors.push('the page crashed'));
    page.on('console', (message) => {
        // The app logs why an import failed as if it were no error.
        if (message.type() === 'error' || message.text().startsWith('Failed to load'))
            errors.push(`console: ${message.text().split('\n')[0]}`);
    });
    page.on('requestfailed', (request) => errors.push(`request failed: ${request.url()}`));
    return page.route('**/*', (route) => {
        const url = route.request().url();
        if (url.startsWith(`${origin}/`) || url.startsWith('data:') || url.startsWith('blob:')) return route.continue();
        errors.push(`request to ${url}`);
        return route.abort();
    });
}

async function frames(page, count) {
    await page.evaluate(async (n) => {
        for (; n > 0; n--) await new Promise((resolve) => requestAnimationFrame(resolve));
    }, count);
}

// Waits until the function gives something other than null and false; an error ends the wait.
async function until(page, what, options, errors, ask, argument) {
    const deadline = performance.now() + options.timeoutMs;
    let answer = null;
    while (!answer && errors.length === 0) {
        if (performance.now() > deadline) errors.push(`${what}: not within ${options.timeoutMs / 1000} s`);
        answer = await page.evaluate(ask, argument);
        if (!answer) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return answer;
}

async function look(page, options, errors) {
    const state = await until(page, 'import', options, errors, () => window.importState());
    if (state === 'error' && errors.length === 0) errors.push('the app says: something went wrong');
    if (errors.length > 0) return {};
    const group = await page.evaluate(describeGroup);
    const shown = options.each ? group.profiles.map((p) => p.index) : [group.activeProfile];

    // Each view is drawn: what is too deep for one fails there. The size is that of the picture from the start: a later
    // one would leave the view zoomed.
    for (const [number, view] of VIEWS.entries()) {
        await page.evaluate((v) => window.appProps().setViewMode(v), number);
        await until(page, `view ${view}`, options, errors, (v) => window.appProps().viewMode === v, number);
        await frames(page, 3);
        if (errors.length > 0) return group;
        if (options.screenshot && view === options.view) {
            await page.evaluate(() => document.fonts.ready.then(() => true));
            await frames(page, 5);
            await page.screenshot({ path: options.screenshot });
        }
    }
    // The sandwich is left, with room for the rows that are wanted.
    await page.setViewportSize({ width: 1200, height: Math.max(800, 20 * (options.top + 5)) });
    for (const index of shown) {
        await page.evaluate((i) => window.appProps().setProfileIndexToView(i), index);
        await until(page, `profile ${index}`, options, errors, (i) => window.appProps().activeProfileState.index === i, index);
        await frames(page, 2);
        if (errors.length > 0) return group;
        Object.assign(group.profiles[index], await page.evaluate(describeShown, options.top));
    }
    return group;
}

// What the app has of a file, and what went wrong.
async function open(browser, file, options) {
    const { server, origin } = await serve(file);
    const errors = [];
    let result = {};
    let page;
    try {
        page = await browser.newPage({
            viewport: { width: options.size[0], height: options.size[1] },
            colorScheme: 'light',
        });
        await page.addInitScript(keepScripts);
        await listen(page, origin, errors);
        const name = encodeURIComponent(`/document/${encodeURIComponent(basename(file))}`);
        await page.goto(`${origin}/#profileURL=${name}`, { timeout: 60000 });
        result = await look(page, options, errors);
    } catch (error) {
        errors.push(error.message.split('\n')[0]);
    }
    const seen = [...errors]; // what is broken off by the end is no error
    await page?.close().catch(() => {});
    server.closeAllConnections();
    server.close();
    return { result, errors: seen };
}

async function main() {
    const options = parseOptions(process.argv.slice(2));
    const { version } = JSON.parse(readFileSync(join(consumers, 'node_modules/speedscope/package.json')));
    const { chromium } = require('playwright-core');
    for (const file of options.files) statSync(file);

    const home = mkdtempSync(join(tmpdir(), 'speedscope_app.'));
    process.on('exit', () => rmSync(home, { recursive: true, force: true }));
    let browser;
    // Signals end the browser too: Playwright sees to that, and Chromium itself when its pipe breaks.
    const watch = () => setTimeout(() => {
        console.error('speedscope_app: the browser does not answer');
        browser?.close().catch(() => {});
        setTimeout(() => process.exit(1), 2000);
    }, 2 * options.timeoutMs + 60000);
    let watchdog = watch();
    try {
        browser = await chromium.launch({
            executablePath: findChromium(),
            args: CHROMIUM_FLAGS,
            env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home },
            timeout: 60000,
        });
        for (const file of options.files) {
            clearTimeout(watchdog);
            watchdog = watch();
            const started = performance.now();
            const beside = options.beside && options.screenshot ? { screenshot: `${file}.png` } : {};
            const { result, errors } = await open(browser, file, { ...options, ...beside });
            const said = JSON.stringify({ speedscope: version, milliseconds: Math.round(performance.now() - started), ...result, errors }, null, 1);
            if (options.beside) writeFileSync(`${file}.app`, said + '\n');
            else console.log(said);
            for (const error of errors) console.error(`speedscope_app: ${basename(file)}: ${error}`);
            if (errors.length > 0) process.exitCode = 1;
        }
    } finally {
        await browser?.close().catch(() => {});
        clearTimeout(watchdog);
    }
}

main().catch((error) => {
    console.error(`speedscope_app: ${error.message}`);
    process.exit(1);
});
