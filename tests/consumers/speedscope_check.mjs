#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// speedscope_check.mjs [--folded INDEX [--beside]] [--microseconds] FILE...: validates what spool2speedscope writes, by
// speedscope's own schema and by what the schema cannot say, and prints a JSON object for each file. Exit 1
// with a line for each fault on standard error, exit 2 for a wrong command line.
//   --folded INDEX  instead of JSON: the stacks of this profile as spool2folded --root=none writes them, sorted
//   --beside        with it: in FILE.folded
//   --microseconds  with it: weights in microseconds, as spool2folded --weight=time has them
// The document is parsed in one piece, up to 512 MiB of text, which is what a string of Node.js holds. 240 MB with
// four million samples take 15 seconds and 1.8 GB.
// CONSUMERS is the folder with node_modules (build/consumers).
import { constants, isAscii, isUtf8 } from 'node:buffer';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const FAULTS_SHOWN = 20;
const GAPS_MAX = 20000; // more are written evented
const DEPTH_MAX = 2002; // 2000 frames under [N frames omitted] and the process
const NANOSECONDS_PER_MICROSECOND = 1000n;

const consumers = process.env.CONSUMERS || fileURLToPath(new URL('../../build/consumers', import.meta.url));
const require = createRequire(`${consumers}/`);

class TooManyFaults extends Error {}

// ---- faults ----

function faultsOf(file) {
    const list = [];
    const report = (text) => {
        list.push(text);
        console.error(`speedscope_check: ${basename(file)}: ${text}`);
        if (list.length >= FAULTS_SHOWN) throw new TooManyFaults();
    };
    return { list, report };
}

const isPositive = (n) => Number.isSafeInteger(n) && n > 0;
const isUnsigned = (n) => Number.isSafeInteger(n) && n >= 0;

// ---- the text ----

function parse(file, report) {
    const bytes = readFileSync(file);
    if (bytes.length > constants.MAX_STRING_LENGTH) {
        report(`has ${bytes.length} bytes, too many to be checked`);
        return null;
    }
    if (bytes.length === 0 || bytes[bytes.length - 1] !== 0x0a || bytes[bytes.length - 2] === 0x0a)
        report('does not end in one LF');
    if (!isUtf8(bytes)) report('is not UTF-8');
    const text = isAscii(bytes) ? bytes.latin1Slice() : bytes.utf8Slice();
    let doc;
    try {
        doc = JSON.parse(text);
    } catch (error) {
        report(`is not JSON: ${error.message}`);
        return null;
    }
    // One text for one value: no blanks, no key twice, integers as digits, only what must be escaped is.
    const canonical = JSON.stringify(doc) + '\n';
    if (text !== canonical && text + '\n' !== canonical && text !== canonical + '\n') {
        let at = 0;
        while (at < text.length && text[at] === canonical[at]) at++;
        report(`byte ${Buffer.byteLength(text.slice(0, at))}: not the shortest form of this value:` +
            ` ${JSON.stringify(text.slice(at, at + 20))} instead of ${JSON.stringify(canonical.slice(at, at + 20))}`);
    }
    return doc;
}

function checkSchema(doc, report) {
    const Ajv = require('ajv');
    const schema = require('speedscope/dist/release/file-format-schema.json');
    const validate = new Ajv({ strict: false }).compile(schema);
    if (validate(doc)) return true;
    for (const e of validate.errors.slice(0, 5)) report(`schema: ${e.instancePath || '/'} ${e.message}`);
    return false;
}

// ---- what the schema cannot say ----

const keysAre = (object, keys) => Object.keys(object).join() === keys;

function checkHead(doc, report) {
    if (!keysAre(doc, '$schema,exporter,name,activeProfileIndex,profiles,shared'))
        report(`keys of the document: ${Object.keys(doc)}`);
    if (!/^spool2speedscope@\d/.test(doc.exporter)) report(`exporter is ${JSON.stringify(doc.exporter)}`);
    if (!doc.name) report('the document has no name');
    if (doc.activeProfileIndex !== 0) report(`activeProfileIndex is ${doc.activeProfileIndex}`);
    if (!keysAre(doc.shared, 'frames')) report(`keys of shared: ${Object.keys(doc.shared)}`);
    if (doc.profiles.length === 0) report('no profile');
}

// Controls, line separators and outer blanks never get as far as a name.
function checkClean(what, text, report) {
    if (text === '') report(`${what} is empty`);
    if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]|^ | $/.test(text)) report(`${what} is not clean: ${JSON.stringify(text)}`);
}

function checkFrames(frames, report) {
    const seen = new Map();
    frames.forEach((frame, i) => {
        if (!/^name(,file)?(,line)?$/.test(Object.keys(frame).join()))
            report(`frame ${i}: keys ${Object.keys(frame)}`);
        checkClean(`frame ${i}: name`, frame.name, report);
        if (frame.file !== undefined) checkClean(`frame ${i}: file`, frame.file, report);
        if (frame.line !== undefined && !isPositive(frame.line)) report(`frame ${i}: line ${frame.line}`);
        const key = JSON.stringify([frame.name, frame.file ?? null]);
        if (seen.has(key)) report(`frame ${i} has name and file of frame ${seen.get(key)}: ${key}`);
        else seen.set(key, i);
    });
}

function checkProfiles(doc, report) {
    const names = new Map();
    doc.profiles.forEach((profile, i) => {
        // The schema asks for these keys and would let others pass.
        if (Object.keys(profile).length !== (profile.type === 'sampled' ? 7 : 6))
            report(`profile ${i}: keys ${Object.keys(profile)}`);
        checkClean(`profile ${i}: name`, profile.name, report);
        if (names.has(profile.name)) report(`profile ${i} has the name of profile ${names.get(profile.name)}: ${profile.name}`);
        names.set(profile.name, i);
        if (!['nanoseconds', 'none'].includes(profile.unit)) report(`profile ${i}: unit ${profile.unit}`);
        if (profile.unit !== doc.profiles[0].unit) report(`profile ${i}: unit ${profile.unit}, not that of the first`);
        if (profile.startValue !== 0) report(`profile ${i}: startValue ${profile.startValue}`);
        if (!isUnsigned(profile.endValue)) report(`profile ${i}: endValue ${profile.endValue}`);
        if (profile.endValue !== doc.profiles[0].endValue)
            report(`profile ${i}: endValue ${profile.endValue}, not that of the first, ${doc.profiles[0].endValue}`);
    });
}

// Adds up what both forms have: each run is a stack (root first, empty: a gap) and a weight.
function newTotals() {
    return { busy: 0n, gapWeight: 0n, gaps: 0, maxDepth: 0, wasGap: false };
}
function addRun(totals, stack, weight, complain) {
    const isGap = stack.length === 0;
    if (isGap) {
        totals.gaps++;
        totals.gapWeight += BigInt(weight);
        if (totals.wasGap) complain('a gap follows a gap');
    } else {
        totals.busy += BigInt(weight);
        totals.maxDepth = Math.max(totals.maxDepth, stack.length);
    }
    totals.wasGap = isGap;
}

// ---- sampled ----

// walkSampled(PROFILE, FRAME COUNT, COMPLAIN, ON RUN)
function walkSampled(profile, frameCount, complain, onRun) {
    const { samples, weights } = profile;
    if (samples.length !== weights.length) {
        complain(`${samples.length} samples and ${weights.length} weights`);
        return;
    }
    for (let i = 0; i < samples.length; i++) {
        const stack = samples[i];
        for (const frame of stack)
            if (!isUnsigned(frame) || frame >= frameCount) complain(`sample ${i}: frame ${frame} of ${frameCount}`);
        if (!isPositive(weights[i])) complain(`sample ${i}: weight ${weights[i]}`);
        else onRun(stack, weights[i], `sample ${i}: `);
    }
    if (samples.length > 0 && samples[samples.length - 1].length === 0) complain('ends in a gap');
}

// ---- evented ----

// At one moment all that ends is closed first, then what begins is opened, and nothing that goes on is
// touched.
function walkEvented(profile, frameCount, complain, onRun) {
    const stack = [];
    let at = 0;
    let opened = false; // something at this moment
    let lowest = -1; // the closed frame nearest to the root at this moment, if it may not be opened again

    profile.events.forEach((event, i) => {
        const where = `event ${i}: `;
        if (Object.keys(event).length !== 3) complain(`${where}keys ${Object.keys(event)}`);
        if (!isUnsigned(event.at) || event.at < at) {
            complain(`${where}at ${event.at} after ${at}`);
            return;
        }
        if (event.at > at) {
            onRun(stack, event.at - at, where);
            at = event.at;
            opened = false;
            lowest = -1;
        }
        if (!isUnsigned(event.frame) || event.frame >= frameCount) complain(`${where}frame ${event.frame} of ${frameCount}`);
        if (event.type === 'O') {
            if (event.frame === lowest) complain(`${where}frame ${event.frame} is closed and opened again`);
            lowest = -1;
            opened = true;
            stack.push(event.frame);
            return;
        }
        if (opened) complain(`${where}closed after something was opened at ${at}`);
        if (stack.length === 0) complain(`${where}closes frame ${event.frame}, but nothing is open`);
        else if (stack.pop() !== event.frame) complain(`${where}closes frame ${event.frame}, which is not the innermost one`);
        lowest = event.frame;
    });
    if (stack.length > 0) complain(`${stack.length} frames are open at the end`);
}

function checkRuns(doc, faults) {
    const frameCount = doc.shared.frames.length;
    const summaries = doc.profiles.map((profile, index) => {
        const totals = newTotals();
        const complain = (text) => faults.report(`profile ${index} (${profile.name}): ${text}`);
        const walk = profile.type === 'sampled' ? walkSampled : walkEvented;
        walk(profile, frameCount, complain, (stack, weight, where) =>
            addRun(totals, stack, weight, (text) => complain(where + text)));
        const entries = (profile.samples ?? profile.events).length;
        const end = totals.busy + totals.gapWeight;
        if (entries === 0 && (doc.profiles.length > 1 || profile.name !== 'no samples' || profile.type !== 'sampled'))
            complain('has no samples');
        if (end > BigInt(profile.endValue)) complain(`ends at ${end}, beyond endValue ${profile.endValue}`);
        if (profile.unit === 'none' && totals.gaps > 0) complain(`unit none, and ${totals.gaps} gaps`);
        if (profile.type === 'sampled' && totals.gaps > GAPS_MAX) complain(`sampled, with ${totals.gaps} gaps`);
        if (totals.maxDepth > DEPTH_MAX) complain(`a stack of ${totals.maxDepth} frames`);
        return {
            index, name: profile.name, type: profile.type, unit: profile.unit, busy: Number(totals.busy),
            gapWeight: Number(totals.gapWeight), entries, gaps: totals.gaps, maxDepth: totals.maxDepth, end: Number(end),
        };
    });
    const last = Math.max(...summaries.map((s) => s.end));
    if (faults.list.length === 0 && last !== doc.profiles[0].endValue)
        faults.report(`endValue is ${doc.profiles[0].endValue}, but the last profile ends at ${last}`);
    return summaries;
}

// ---- folded ----

function foldedName(name) {
    return name.replaceAll(';', ':').replace(/ (?=\d+\.?\d*$)/, '_');
}

function foldedLines(doc, index, inMicroseconds) {
    const names = doc.shared.frames.map((frame) => foldedName(frame.name));
    const profile = doc.profiles[index];
    const byFrames = new Map(); // text of the indices: cheaper than names for every sample
    const walk = profile.type === 'sampled' ? walkSampled : walkEvented;
    walk(profile, names.length, () => {}, (stack, weight) => {
        if (stack.length === 0) return;
        const key = stack.join();
        byFrames.set(key, (byFrames.get(key) ?? 0n) + BigInt(weight));
    });
    const byNames = new Map(); // two files may have a function of one name
    for (const [key, weight] of byFrames) {
        let line = key.split(',').map((frame) => names[frame]).join(';');
        if (/^[#{]/.test(line)) line = `_${line}`;
        byNames.set(line, (byNames.get(line) ?? 0n) + weight);
    }
    const count = (weight) => {
        const micros = weight / NANOSECONDS_PER_MICROSECOND;
        return inMicroseconds ? (micros > 0n ? micros : 1n) : weight;
    };
    return [...byNames]
        .map(([line, weight]) => [Buffer.from(line), count(weight)])
        .sort((a, b) => Buffer.compare(a[0], b[0]))
        .map(([line, weight]) => `${line} ${weight}\n`);
}

// ---- command line ----

function check(file) {
    const faults = faultsOf(file);
    let profiles = [];
    let doc = null;
    try {
        doc = parse(file, faults.report);
        if (doc !== null && checkSchema(doc, faults.report)) {
            checkHead(doc, faults.report);
            checkFrames(doc.shared.frames, faults.report);
            checkProfiles(doc, faults.report);
            profiles = checkRuns(doc, faults);
        }
    } catch (error) {
        if (!(error instanceof TooManyFaults)) throw error;
        console.error(`speedscope_check: ${basename(file)}: and more`);
    }
    const summary = doc && {
        name: doc.name, exporter: doc.exporter, frames: doc.shared?.frames?.length ?? 0,
        endValue: doc.profiles?.[0]?.endValue ?? 0, profiles,
    };
    return { doc, summary, ok: faults.list.length === 0 };
}

function usage(text) {
    console.error(`speedscope_check: ${text}\nusage: speedscope_check.mjs [--folded INDEX [--beside]] [--microseconds] FILE...`);
    process.exit(2);
}

function writeAll(lines) {
    for (let i = 0; i < lines.length; i += 4096) process.stdout.write(lines.slice(i, i + 4096).join(''));
}

function main(args) {
    const files = [];
    let folded = null;
    let inMicroseconds = false;
    let beside = false;
    for (let i = 0; i < args.length; i++) {
        if (args[i] === '--folded') folded = Number(args[++i]);
        else if (args[i] === '--microseconds') inMicroseconds = true;
        else if (args[i] === '--beside') beside = true;
        else if (args[i].startsWith('--')) usage(`unknown option ${args[i]}`);
        else files.push(args[i]);
    }
    if (files.length === 0) usage('no file');
    if (folded !== null && !isUnsigned(folded)) usage('--folded needs the index of a profile');
    for (const file of files) {
        const { doc, summary, ok } = check(file);
        if (!ok) process.exitCode = 1;
        else if (folded === null) console.log(JSON.stringify(summary, null, 1));
        else if (folded >= doc.profiles.length) usage(`${basename(file)} has ${doc.profiles.length} profiles`);
        else if (beside) writeFileSync(`${file}.folded`, foldedLines(doc, folded, inMicroseconds).join(''));
        else writeAll(foldedLines(doc, folded, inMicroseconds));
    }
}

main(process.argv.slice(2));
