// SPDX-License-Identifier: MIT
// Reads a speedscope document back into stacks, and finds what the schema cannot say.
//
//     node decode_speedscope.mjs FILE [--summary]
//     node decode_speedscope.mjs --faults FILE...
//
// prints { name, size, frames, profiles: [{ name, type, unit, endValue, busy, gaps, idle, depth, entries, runs }] } as
// JSON, where runs are [{ stack, weight }] in order, root first, [] for a gap (left out with --summary). Exit status 1 with
// a line for each fault on standard error; --faults: nothing but those, of several files. As a module: decodeSpeedscope(text) is { document, faults }.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const keys = ['$schema', 'exporter', 'name', 'activeProfileIndex', 'profiles', 'shared'];

function sampled(p, fault) {
    if (p.samples.length !== p.weights.length) fault(`${p.samples.length} samples, ${p.weights.length} weights`);
    return p.samples.map((stack, i) => ({ stack, weight: p.weights[i] }));
}

function evented(p, fault) {
    const open = [], runs = [];
    let at = p.startValue;

    for (const e of p.events) {
        if (e.at < at) fault(`time goes back from ${at} to ${e.at}`);
        if (e.at > at) runs.push({ stack: [...open], weight: e.at - at });
        at = e.at;
        if (e.type === 'O') open.push(e.frame);
        else if (e.type !== 'C' || open.pop() !== e.frame) fault(`a frame is closed that is not the innermost, at ${e.at}`);
    }
    if (open.length > 0) fault('frames are left open');
    return runs;
}

function profile(p, frames, fault) {
    const runs = p.type === 'evented' ? evented(p, fault) : sampled(p, fault);
    const result = { name: p.name, type: p.type, unit: p.unit, endValue: p.endValue, busy: 0, gaps: 0, idle: 0, depth: 0 };

    if (p.startValue !== 0) fault(`it starts at ${p.startValue}`);
    for (const { stack, weight } of runs) {
        if (!Number.isSafeInteger(weight) || weight <= 0) fault(`weight ${weight}`);
        if (stack.some((i) => !Number.isInteger(i) || i < 0 || i >= frames.length)) fault('a frame that is not there');
        result.depth = Math.max(result.depth, stack.length);
        if (stack.length > 0) {
            result.busy += weight;
        } else {
            result.gaps++;
            result.idle += weight;
        }
    }
    if (result.busy + result.idle > p.endValue) fault(`weights add up to more than the end, ${p.endValue}`);
    result.entries = runs.length;
    result.runs = runs.map(({ stack, weight }) => ({ stack: stack.map((i) => frames[i]?.name ?? ''), weight }));
    return result;
}

export function decodeSpeedscope(text) {
    const d = JSON.parse(text), faults = new Set();
    const frames = d.shared.frames, names = new Set(), ends = new Set();

    if (Object.keys(d).join() !== keys.join()) faults.add(`keys ${Object.keys(d)}`);
    if (!text.endsWith('}\n')) faults.add('it does not end in one line break');
    if (d.profiles.length === 0) faults.add('no profile');
    if (d.activeProfileIndex !== 0) faults.add(`profile ${d.activeProfileIndex} is active`);
    if (new Set(frames.map((f) => JSON.stringify([f.name, f.file]))).size !== frames.length) faults.add('a frame stands twice');
    for (const f of frames) {
        if (typeof f.name !== 'string' || f.name === '') faults.add('a frame without a name');
        if (Object.values(f).includes(null)) faults.add('null for what is not known');
        if ('col' in f) faults.add('a column');
    }
    const profiles = d.profiles.map((p) => {
        if (names.has(p.name)) faults.add(`two profiles are called ${p.name}`);
        names.add(p.name);
        ends.add(p.endValue);
        return profile(p, frames, (what) => faults.add(`${p.name}: ${what}`));
    });
    if (ends.size > 1) faults.add(`profiles end at ${[...ends]}`);
    return { document: { name: d.name, size: text.length, frames, profiles }, faults: [...faults] };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
    const onlyFaults = process.argv[2] === '--faults';
    for (const file of onlyFaults ? process.argv.slice(3) : [process.argv[2]]) {
        const { document, faults } = decodeSpeedscope(readFileSync(file, 'utf8'));

        if (process.argv[3] === '--summary') for (const p of document.profiles) delete p.runs;
        if (!onlyFaults) process.stdout.write(JSON.stringify(document) + '\n');
        for (const fault of faults) process.stderr.write(`${file}: ${fault}\n`);
        if (faults.length > 0) process.exitCode = 1;
    }
}
