// SPDX-License-Identifier: MIT
// For consistency.sh: compares what every tool said of a fixture, row by row of the table of options.
//
//     node consistency.mjs FOLDER...
//
// FOLDER is a fixture's: `facts` is spoolcat's summary without options; ROW.options are those of a row, ROW.OUTPUT,
// ROW.OUTPUT.err and ROW.OUTPUT.status what a tool made of them. The measure is what spool2folded --root=none writes: how
// many samples, and how much time, each stack has. The stacks of the others are put into the text that folded output has
// for them. Exit status 1 with a line for each difference.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { decodePprof } from './decode_pprof.mjs';
import { decodeSpeedscope } from './decode_speedscope.mjs';

const differences = [];

// ---- stacks as folded lines ----

// How spool2folded(1), DESCRIPTION, writes a clean name.
function frameText(name) {
    return name.replaceAll(';', ':').replace(/ ((?:\d+\.?\d*|\d*\.\d+))$/, (tail, number) => (number.startsWith('.') ? tail : `_${number}`));
}

function line(stack) { // names, root first
    const text = stack.map(frameText).join(';');
    return /^[#{]/.test(text) ? `_${text}` : text;
}

class Stacks extends Map {
    add(key, weight) {
        this.set(key, (this.get(key) ?? 0n) + BigInt(weight));
    }

    get total() {
        return [...this.values()].reduce((sum, n) => sum + n, 0n);
    }

    // Nanoseconds as folded output counts them, in microseconds.
    get microseconds() {
        const result = new Stacks();
        for (const [key, ns] of this) result.set(key, ns < 1000n ? 1n : ns / 1000n);
        return result;
    }
}

function foldedStacks(text) {
    const stacks = new Stacks();
    for (const one of text.split('\n').slice(0, -1)) {
        const at = one.lastIndexOf(' ');
        stacks.add(one.slice(0, at), one.slice(at + 1));
    }
    return stacks;
}

function pprofStacks(profile, type) {
    const stacks = new Stacks(), index = profile.sample_type.findIndex((t) => t.type === type);
    for (const s of profile.sample) stacks.add(line(s.stack), s.value[index]);
    return stacks;
}

function speedscopeStacks(document) {
    const stacks = new Stacks();
    for (const p of document.profiles)
        for (const { stack, weight } of p.runs) if (stack.length > 0) stacks.add(line(stack), weight);
    return stacks;
}

// Numbers beyond 2^53 as texts; a quote inside a text has a backslash before it, so this touches keys only.
function parseExact(json) {
    return JSON.parse(json.replace(/"(\w+)":(-?\d{16,})/g, '"$1":"$2"'));
}

// What a converter calls a frame of spoolcat: the rules under "Names" in their pages.
function spoolcatName(frame, moduleOnly) {
    if (frame.name !== null && frame.name !== undefined) return frame.name; // of a placeholder, too
    if (frame.kind === 'truncated') return '[truncated]';
    const path = frame.module && frame.module.path.replace(/ \(deleted\)$/, '');
    const base = path && (path.startsWith('//') ? path : path.replace(/^.*\/(?=.)/s, '')); // //anon is no path
    const hex = (n, offset) => `0x${(BigInt(n) - BigInt(offset ?? 0)).toString(16)}`;
    if (moduleOnly) return base === null ? (frame.kind === 'kernel' ? '[kernel.kallsyms]' : '[unknown]') : base.startsWith('[') ? base : `[${base}]`;
    return base === null ? hex(frame.abs, frame.offset) : `${base}+${hex(frame.module.rel, frame.offset)}`;
}

function spoolcatStacks(text, moduleOnly) {
    const stacks = new Stacks();
    for (const one of text.split('\n').slice(0, -1)) {
        const { samples, frames } = parseExact(one);
        const names = frames.map((frame) => spoolcatName(frame, moduleOnly)).reverse();
        stacks.add(line(names.length > 0 ? names : ['[no frames]']), samples);
    }
    return stacks;
}

// ---- comparing ----

class Row {
    constructor(fixture, prefix) {
        this.fixture = fixture;
        this.prefix = prefix;
        this.options = readFileSync(`${prefix}.options`, 'utf8').trim();
    }

    differ(what) {
        differences.push(`${this.fixture.name} [${this.options}]: ${what}`);
    }

    // { status, out, err } of a tool, or null when it was not asked for.
    read(output) {
        const file = `${this.prefix}.${output}`;
        if (!existsSync(`${file}.status`)) return null;
        const status = Number(readFileSync(`${file}.status`, 'utf8'));
        return { status, out: readFileSync(file), err: readFileSync(`${file}.err`, 'utf8').trim() };
    }

    // The output of a tool that succeeded, else null.
    good(output) {
        const result = this.read(output);
        if (result === null || result.status === 0) return result?.out ?? null;
        this.differ(`${output}: exit status ${result.status}: ${result.err}`);
        return null;
    }

    // Time is an error where no interval is stated.
    refused(output) {
        const result = this.read(output);
        if (result !== null && result.status !== 1) this.differ(`${output}: exit status ${result.status} without an interval`);
    }

    compare(output, got, expected) {
        for (const [key, weight] of expected)
            if (got.get(key) !== weight) {
                this.differ(`${output} has ${got.get(key) ?? 0n} instead of ${weight} of ${key.slice(0, 300)}`);
                return;
            }
        for (const [key, weight] of got)
            if (!expected.has(key)) {
                this.differ(`${output} alone has ${weight} of ${key.slice(0, 300)}`);
                return;
            }
    }

    pprof(samples, time) {
        const out = this.good('spool2pprof');
        if (out === null) return;
        const { profile, faults } = decodePprof(out);
        for (const fault of faults) this.differ(`spool2pprof: ${fault}`);
        this.compare('spool2pprof', pprofStacks(profile, 'samples'), samples);
        if (time !== null) this.compare('spool2pprof (time)', pprofStacks(profile, 'cpu').microseconds, time);
        else if (!this.fixture.hasTime && profile.sample_type.length !== 1) this.differ('spool2pprof knows a time that is not stated');
    }

    speedscope(output, expected, timed) {
        const out = this.good(output);
        if (out === null) return;
        const { document, faults } = decodeSpeedscope(out.toString());
        for (const fault of faults) this.differ(`${output}: ${fault}`);
        const stacks = speedscopeStacks(document);
        this.compare(output, timed ? stacks.microseconds : stacks, expected);
    }

    spoolcat(samples) {
        const stacks = this.good('spoolcat-stacks'), summary = this.good('spoolcat-summary');
        if (stacks !== null)
            this.compare('spoolcat-stacks', spoolcatStacks(stacks.toString(), this.options.includes('--unresolved=module')), samples);
        if (summary === null) return;
        let count = 0n;
        for (const one of jsonLines(summary)) count += BigInt(one.samples);
        if (count !== samples.total) this.differ(`spoolcat --summary counts ${count} of ${samples.total} samples`);
    }

    run() {
        const folded = this.good('spool2folded');
        if (folded === null) return;
        const samples = foldedStacks(folded.toString());
        let time = null;
        if (!this.fixture.hasTime) {
            this.refused('spool2folded-time');
            this.refused('spool2speedscope-time');
        } else if (this.read('spool2folded-time') !== null) {
            time = foldedStacks(this.good('spool2folded-time')?.toString() ?? '');
            if (this.fixture.interval !== null) {
                const product = new Stacks();
                for (const [key, count] of samples) product.set(key, count * this.fixture.interval);
                this.compare('spool2folded-time', time, product.microseconds);
            }
            this.speedscope('spool2speedscope-time', time, true);
        }
        this.pprof(samples, time);
        this.speedscope('spool2speedscope', samples, false);
        this.spoolcat(samples);
    }
}

function jsonLines(bytes) {
    return bytes.toString().split('\n').slice(0, -1).map(parseExact);
}

for (const folder of process.argv.slice(2)) {
    const facts = jsonLines(readFileSync(`${folder}/facts`));
    const intervals = new Set(facts.map((f) => String(f.interval_ns)));
    const fixture = {
        name: basename(folder), hasTime: !intervals.has('0'),
        interval: intervals.size === 1 ? BigInt([...intervals][0]) : null,
    };
    if (facts.length === 0) differences.push(`${fixture.name}: no facts`);
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.options')))
        new Row(fixture, `${folder}/${file.replace(/\.options$/, '')}`).run();
}
for (const difference of differences.slice(0, 30)) console.log(difference);
if (differences.length > 30) console.log(`${differences.length} differences in all`);
process.exitCode = differences.length > 0 ? 1 : 0;
