#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What stackpulse itself reads from its files, and which it refuses, against spoolcat --records --json. The
# samples' modules are left out: which module an unpinned frame belongs to is not part of this view.
. "$(dirname "$0")/_common.sh"

# Both forms become the same lines. Numbers stay texts: awk would round those above 2^53.
cat >dump.awk <<'END'
function get(key,    at, rest) {
    at = index($0, "\"" key "\":")
    if (at == 0)
        return ""
    rest = substr($0, at + length(key) + 3)
    match(rest, /^("([^"\\]|\\.)*"|[^,}]*)/)
    return substr(rest, 1, RLENGTH)
}
function frame_letter(mode) {
    return mode == "\"user\"" ? "u" : mode == "\"kernel\"" ? "k" : "t"
}
END
cat >ours.awk <<'END'
{ rec = get("rec") }
rec == "\"header\"" { start = get("start_us"); interval = get("interval_us") }
rec == "\"module\"" {
    modules[module_count++] = get("id") " " get("pid") " " get("start") " " get("end") " " \
        get("file_offset") " " get("inode") " " get("dev_major") " " get("dev_minor") " " \
        get("inode_gen") " " get("kernel") " " get("path")
}
rec == "\"frame\"" {
    id = get("id"); kind = get("kind")
    module = kind == "\"pinned\"" ? get("module") : "null"
    abs_[id] = kind == "\"truncated\"" ? "0" : get("abs")
    rel = kind == "\"pinned\"" ? get("rel") : abs_[id]
    mode[id] = frame_letter(kind == "\"truncated\"" ? kind : get("mode"))
    frames[id] = id " " module " " rel " " abs_[id] " " mode[id]
    frame_count++
}
rec == "\"stack\"" { prefix[get("id")] = get("prefix"); leaf[get("id")] = get("frame"); depth[get("id")] = get("depth") }
rec == "\"thread\"" { pid[get("id")] = get("pid"); tid[get("id")] = get("tid") }
rec == "\"python\"" { python[python_count++] = get("ts") " " get("pid") " " get("on") }
rec == "\"sample\"" {
    thread = get("thread")
    if (get("pid") != pid[thread] || get("tid") != tid[thread] || get("index") != sample_count + 0)
        print "sample disagrees with its thread or has a wrong index: " $0
    text = get("ts") " " get("pid") " " get("tid") " " get("stack") " "
    count = 0
    for (node = get("stack"); node != "null"; node = prefix[node]) {
        text = text abs_[leaf[node]] mode[leaf[node]] " "
        count++
    }
    if (count != depth[get("stack")])
        print "wrong depth: " $0
    samples[sample_count++] = text
}
rec == "\"end\"" {
    if (get("modules") != module_count + 0 || get("frames") != frame_count + 0 ||
        get("samples") != sample_count + 0 || get("python") != python_count + 0)
        print "wrong counts: " $0
    version = get("version"); truncated = get("truncated"); ended = 1
}
END {
    if (!ended)
        print "no end"
    print "SPULSE" version, start, interval, module_count + 0, frame_count + 0, sample_count + 0, python_count + 0, truncated
    for (i = 0; i < module_count; i++) print "module", modules[i]
    for (i = 0; i < frame_count; i++) print "frame", frames[i]
    for (i = 0; i < python_count; i++) print "python", python[i]
    for (i = 0; i < sample_count; i++) print "sample", samples[i]
}
END
cat >theirs.awk <<'END'
{ type = get("type") }
type == "\"header\"" {
    magic = get("magic"); gsub(/"/, "", magic)
    print magic, get("start_timestamp_us"), get("sample_interval_us"), get("modules"), get("frames"), get("samples"), get("python_runtime_records"), get("truncated_tail")
}
type == "\"module\"" {
    print "module", get("id"), get("process_id"), get("start"), get("end"), get("file_offset"), get("inode"), get("device_major"), get("device_minor"), get("inode_generation"), get("is_kernel"), get("path")
}
type == "\"frame\"" { print "frame", get("id"), get("module_id"), get("file_relative_ip"), get("abs_ip"), frame_letter(get("mode")) }
type == "\"python_runtime\"" { print "python", get("timestamp_ns"), get("process_id"), get("is_python_runtime") }
type == "\"sample\"" {
    text = get("timestamp_ns") " " get("process_id") " " get("thread_id") " " get("stack_id") " "
    rest = substr($0, index($0, "\"frames\":[") + 10)
    while (match(rest, /\[[0-9]+,"[ukt]",/)) {
        text = text substr(rest, RSTART + 1, RLENGTH - 6) substr(rest, RSTART + RLENGTH - 3, 1) " "
        rest = substr(rest, RSTART + RLENGTH)
    }
    print "sample", text
}
END

accepted=0 refused=0
for spool in "$cases"/*.spool; do
    name=$(basename "$spool" .spool)
    expected=$cases/$name.expected
    if [ "$(head -c 7 "$expected")" = "error: " ]; then
        # The words are our own; the verdict is not.
        run 1 "$spoolcat" --records --json "$spool"
        [ "$(wc -l <err)" = 1 ] || die "$name: not one line of error"
        [[ $(<err) == "spoolcat: $spool: "* ]] || die "$name: $(<err)"
        ! grep -q '"rec":"end"' out || die "$name: an end record of a refused file"
        refused=$((refused + 1))
        continue
    fi
    run 0 "$spoolcat" --records --json "$spool"
    awk -f dump.awk -f ours.awk out >ours
    awk -f dump.awk -f theirs.awk "$expected" >theirs
    diff -u theirs ours || die "$name differs from what stackpulse reads"
    accepted=$((accepted + 1))
done
[ $accepted -ge 35 ] && [ $refused -ge 35 ] || die "only $accepted accepted and $refused refused cases"

for dump in "$FIXTURES"/stackpulse/*/*.dump.jsonl.gz; do
    spool=${dump%.dump.jsonl.gz}.spool
    run 0 "$spoolcat" --records --json "$spool"
    awk -f dump.awk -f ours.awk out >ours
    gzip -dc "$dump" | awk -f dump.awk -f theirs.awk >theirs
    diff -u theirs ours >difference || die "$spool differs from what stackpulse reads: $(head -5 difference)"
done
