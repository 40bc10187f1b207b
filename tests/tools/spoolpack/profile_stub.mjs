// SPDX-License-Identifier: MIT
// A stand-in for the databases of README.md: takes what Pyroscope and Parca take over HTTP, and refuses the rest.
//
//     node profile_stub.mjs FOLDER    writes its port to FOLDER/port, each profile to FOLDER/N.pb.gz and a line about
//                                     it to FOLDER/log: database, host and times
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const folder = process.argv[2];
let profiles = 0;

function take(line, profile) {
    writeFileSync(`${folder}/${profiles++}.pb.gz`, profile);
    appendFileSync(`${folder}/log`, `${line}\n`);
}

// The only part of a multipart/form-data body: { name, bytes }.
function part(type, body) {
    const boundary = /^multipart\/form-data; boundary=([-\w]+)$/.exec(type)?.[1];
    if (!boundary) throw new Error(`content type ${type}`);
    const begin = Buffer.from(`--${boundary}\r\n`), end = Buffer.from(`\r\n--${boundary}--\r\n`);
    if (!body.subarray(0, begin.length).equals(begin) || !body.subarray(-end.length).equals(end))
        throw new Error('the body is not between its boundaries');
    const head = body.indexOf('\r\n\r\n');
    const name = / name="([^"]*)"/.exec(body.subarray(0, head).toString())?.[1];
    const bytes = body.subarray(head + 4, -end.length);
    if (bytes.includes(Buffer.from(`--${boundary}`))) throw new Error('more than one part');
    return { name, bytes };
}

function pyroscope(url, request, body) {
    const { name, from, until, ...others } = Object.fromEntries(url.searchParams);
    // With format=pprof the body itself would be the profile.
    if (Object.keys(others).length > 0) throw new Error(`parameters ${Object.keys(others)}`);
    const label = /^app\{host=(\w+)\}$/.exec(name)?.[1];
    if (!label || !/^\d{10}$/.test(from) || !/^\d{10}$/.test(until) || from >= until) throw new Error(url.search);
    const field = part(request.headers['content-type'], body);
    if (field.name !== 'profile') throw new Error(`field ${field.name}`);
    take(`pyroscope ${label} ${from} ${until}`, field.bytes);
}

function parca(url, request, body) {
    if (request.headers['content-type'] !== 'application/json') throw new Error('content type');
    const { series, ...others } = JSON.parse(body.toString());
    if (series.length !== 1 || series[0].samples.length !== 1 || Object.keys(others).length > 0)
        throw new Error('series');
    const labels = Object.fromEntries(series[0].labels.labels.map(({ name, value }) => [name, value]));
    if (!labels.__name__) throw new Error('missing __name__ label');
    take(`parca ${labels.host}`, Buffer.from(series[0].samples[0].raw_profile, 'base64'));
}

const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        const url = new URL(request.url, 'http://localhost');
        const handler = { '/ingest': pyroscope, '/api/profiles/writeraw': parca }[url.pathname];
        try {
            if (request.method !== 'POST' || !handler) throw new Error(`${request.method} ${request.url}`);
            handler(url, request, Buffer.concat(chunks));
            response.end();
        } catch (error) {
            appendFileSync(`${folder}/log`, `refused: ${error.message}\n`);
            response.writeHead(400).end();
        }
    });
});
server.listen(0, '127.0.0.1', () => {
    writeFileSync(`${folder}/port.new`, `${server.address().port}\n`);
    renameSync(`${folder}/port.new`, `${folder}/port`);
});
