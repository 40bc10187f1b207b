// SPDX-License-Identifier: MIT
// Reads profile.proto without any library of others, and finds what a writer must not do:
// ids that are not position + 1, objects that nothing refers to, references that lead nowhere, texts that are not UTF-8.
//
//     node decode_pprof.mjs FILE      the profile as JSON, exit status 1 with a line for each fault on standard error
//
// As a module: decodePprof(bytes) is { profile, faults }. FILE may be gzip. Strings stand where the message has indexes.
// A number is a JSON number as long as it is exact, else a string. A sample has, beside what the message says, its
// `stack`: function names, root first, inlined functions behind the one they were inlined into.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { pathToFileURL } from 'node:url';

const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

// Message types: field number to [name, kind]. s: index of a string, i: int64, u: uint64, b: bool, others: messages.
const messages = {
    Profile: {
        1: ['sample_type', 'ValueType[]'], 2: ['sample', 'Sample[]'], 3: ['mapping', 'Mapping[]'],
        4: ['location', 'Location[]'], 5: ['function', 'Function[]'], 6: ['string_table', 'text[]'],
        7: ['drop_frames', 's'], 8: ['keep_frames', 's'], 9: ['time_nanos', 'i'], 10: ['duration_nanos', 'i'],
        11: ['period_type', 'ValueType'], 12: ['period', 'i'], 13: ['comment', 's[]'], 14: ['default_sample_type', 's'],
        15: ['doc_url', 's'],
    },
    ValueType: { 1: ['type', 's'], 2: ['unit', 's'] },
    Sample: { 1: ['location_id', 'u[]'], 2: ['value', 'i[]'], 3: ['label', 'Label[]'] },
    Label: { 1: ['key', 's'], 2: ['str', 's'], 3: ['num', 'i'], 4: ['num_unit', 's'] },
    Mapping: {
        1: ['id', 'u'], 2: ['memory_start', 'u'], 3: ['memory_limit', 'u'], 4: ['file_offset', 'u'], 5: ['filename', 's'],
        6: ['build_id', 's'], 7: ['has_functions', 'b'], 8: ['has_filenames', 'b'], 9: ['has_line_numbers', 'b'],
        10: ['has_inline_frames', 'b'],
    },
    Location: { 1: ['id', 'u'], 2: ['mapping_id', 'u'], 3: ['address', 'u'], 4: ['line', 'Line[]'], 5: ['is_folded', 'b'] },
    Line: { 1: ['function_id', 'u'], 2: ['line', 'i'], 3: ['column', 'i'] },
    Function: { 1: ['id', 'u'], 2: ['name', 's'], 3: ['system_name', 's'], 4: ['filename', 's'], 5: ['start_line', 'i'] },
};

class Reader {
    constructor(bytes) {
        this.bytes = bytes;
        this.faults = [];
        this.strings = [];
    }

    varint(at) { // { value, next }, value as a number while it is exact
        let value = 0, scale = 1;
        for (let i = at.pos; i < at.end && i < at.pos + 7; i++) {
            const byte = this.bytes[i];
            value += (byte & 127) * scale;
            if (byte < 128) {
                at.pos = i + 1;
                return value;
            }
            scale *= 128;
        }
        let big = 0n;
        for (let shift = 0n; shift < 70n; shift += 7n) {
            if (at.pos >= at.end) throw new Error(`a number is cut off at byte ${at.pos}`);
            const byte = this.bytes[at.pos++];
            big |= BigInt(byte & 127) << shift;
            if (byte < 128) {
                if (big >= 1n << 64n) throw new Error(`a number above 64 bits at byte ${at.pos}`);
                return big;
            }
        }
        throw new Error(`a number of more than ten bytes at byte ${at.pos}`);
    }

    signed(value) {
        return typeof value === 'bigint' ? BigInt.asIntN(64, value) : value;
    }

    put(object, [name, kind], value) {
        if (kind.endsWith('[]')) {
            object[name].push(value);
            return;
        }
        if (object[name] !== undefined) this.faults.push(`${name} stands twice`);
        object[name] = value;
    }

    message(type, at) {
        const fields = messages[type], object = {};
        for (const [name, kind] of Object.values(fields)) if (kind.endsWith('[]')) object[name] = [];
        while (at.pos < at.end) {
            const key = Number(this.varint(at)), number = Math.floor(key / 8), wire = key % 8, field = fields[number];
            if (field === undefined) throw new Error(`${type} has no field ${number}`);
            const kind = field[1].replace('[]', '');
            if (wire === 0 && 'siub'.includes(kind)) {
                this.put(object, field, kind === 'i' ? this.signed(this.varint(at)) : this.varint(at));
                continue;
            }
            if (wire !== 2) throw new Error(`${type}.${field[0]} has wire type ${wire}`);
            const size = Number(this.varint(at)), inner = { pos: at.pos, end: at.pos + size };
            if (inner.end > at.end) throw new Error(`${type}.${field[0]} leads beyond its end`);
            at.pos = inner.end;
            if (kind === 'text') {
                this.put(object, field, this.string(inner));
            } else if ('siub'.includes(kind)) {
                if (!field[1].endsWith('[]')) throw new Error(`${type}.${field[0]} is packed`);
                while (inner.pos < inner.end) {
                    const value = this.varint(inner);
                    object[field[0]].push(kind === 'i' ? this.signed(value) : value);
                }
            } else {
                this.put(object, field, this.message(kind, inner));
            }
        }
        return object;
    }

    string({ pos, end }) {
        const bytes = this.bytes.subarray(pos, end);
        try {
            return text.decode(bytes);
        } catch {
            this.faults.push(`a text is not UTF-8: ${Buffer.from(bytes).toString('latin1')}`);
            return '';
        }
    }
}

// Puts strings where indexes were.
function name(object, type, strings, faults) {
    for (const [field, kind] of Object.values(messages[type])) {
        const bare = kind.replace('[]', '');
        const value = object[field];
        if (bare === 's') {
            const one = (index) => {
                if (strings[index] === undefined) faults.push(`${type}.${field}: no string ${index}`);
                return strings[index] ?? '';
            };
            if (kind.endsWith('[]')) object[field] = value.map(one);
            else if (value !== undefined) object[field] = one(value);
        } else if (messages[bare] !== undefined && value !== undefined) {
            for (const inner of kind.endsWith('[]') ? value : [value]) name(inner, bare, strings, faults);
        }
    }
}

function check(p, faults) {
    const used = { location: new Set(), mapping: new Set(), function: new Set() };
    if (p.string_table[0] !== '') faults.push('string 0 is not empty');
    if (new Set(p.string_table).size !== p.string_table.length) faults.push('a string stands twice');
    for (const table of ['mapping', 'location', 'function'])
        p[table].forEach((item, i) => {
            if (item.id !== i + 1) faults.push(`${table} ${i + 1} has id ${item.id}`);
        });
    for (const s of p.sample) {
        if (s.value.length !== p.sample_type.length) faults.push(`a sample has ${s.value.length} values`);
        if (s.value.every((v) => BigInt(v) === 0n)) faults.push('a sample weighs nothing');
        if (s.value.some((v) => BigInt(v) < 0n)) faults.push('a sample weighs less than nothing');
        if (s.location_id.length === 0) faults.push('a sample has no location');
        const keys = s.label.map((l) => l.key);
        if (keys.join() !== [...keys].sort().join()) faults.push(`labels are not in order: ${keys}`);
        for (const id of s.location_id) {
            used.location.add(id);
            if (p.location[id - 1] === undefined) faults.push(`no location ${id}`);
        }
    }
    for (const l of p.location) {
        if (p.mapping[l.mapping_id - 1] === undefined) faults.push(`location ${l.id} is in no mapping`);
        used.mapping.add(l.mapping_id);
        for (const line of l.line) {
            used.function.add(line.function_id);
            if (p.function[line.function_id - 1] === undefined) faults.push(`no function ${line.function_id}`);
        }
    }
    for (const f of p.function) {
        if (!f.name) faults.push(`function ${f.id} has no name`);
        if (f.system_name === f.name) faults.push(`function ${f.id} has its name as linkage name`);
    }
    for (const table of ['location', 'function'])
        for (const item of p[table])
            if (!used[table].has(item.id)) faults.push(`nothing refers to ${table} ${item.id}`);
    // Mapping 1 may be there for its name alone.
    for (const m of p.mapping.slice(1)) if (!used.mapping.has(m.id)) faults.push(`nothing refers to mapping ${m.id}`);
}

export function decodePprof(input) {
    const bytes = input[0] === 0x1f && input[1] === 0x8b ? gunzipSync(input) : input;
    const reader = new Reader(bytes), faults = reader.faults;
    const profile = reader.message('Profile', { pos: 0, end: bytes.length });

    name(profile, 'Profile', profile.string_table, faults);
    check(profile, faults);
    const chains = profile.location.map((l) => l.line.map((line) => profile.function[line.function_id - 1]?.name ?? '').reverse());
    for (const s of profile.sample) {
        s.stack = [];
        for (const id of [...s.location_id].reverse()) s.stack.push(...(chains[id - 1] ?? ['']));
        s.labels = Object.fromEntries(s.label.map((l) => [l.key, l.str || (l.num ?? 0)]));
    }
    return { profile, faults: [...new Set(faults)] };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
    const { profile, faults } = decodePprof(readFileSync(process.argv[2]));
    const plain = (key, value) => {
        if (typeof value !== 'bigint') return value;
        return value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= -BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : String(value);
    };

    process.stdout.write(JSON.stringify(profile, plain) + '\n');
    for (const fault of faults) process.stderr.write(`${process.argv[2]}: ${fault}\n`);
    process.exitCode = faults.length > 0 ? 1 : 0;
}
