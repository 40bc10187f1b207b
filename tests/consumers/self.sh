#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The helpers of this folder themselves: the worked example of both formats is accepted with its numbers, and each kind of
# damage to it is refused.
set -eu
. "$(dirname "$0")/_pprof.sh"
. "$(dirname "$0")/_speedscope.sh"
documents=$(dirname "$0")/documents
pprof_need
speedscope_need

equal() { # WHAT GOT EXPECTED
    [ "$2" = "$3" ] || die "$1: $2 instead of $3"
}

# ---- speedscope documents ----

for form in sampled evented; do
    file=$form.json
    cp "$documents/worked-$form.speedscope.json" "$file"
    speedscope_check "$file"
    equal "$form" "$(json "$file.check" '[d.endValue, d.frames, ...["type", "busy", "gapWeight", "gaps", "maxDepth"].map((k) => d.profiles[0][k])]')" \
        "[60000000,4,\"$form\",30000000,30000000,1,4]"
    equal "folded, $form" "$(speedscope_folded "$file" 0)" 'main;run 10000000
main;run;f 10000000
main;run;f;g 10000000'
    equal "folded in microseconds, $form" "$(speedscope_folded "$file" 0 --microseconds | tail -n 1)" 'main;run;f;g 10000'
done

# damaged FORM SUBSTITUTION TEXT: the document with this done to it is refused with this text. All of them are
# checked in one run below.
damage_texts=()
damaged() {
    local file=damaged-${#damage_texts[@]}.json
    perl -pe "$2" "$1.json" >"$file"
    ! cmp -s "$1.json" "$file" || die "nothing damaged: $2"
    damage_texts+=("$3")
}
damaged sampled 's/"sampled"/"simple"/' 'schema: '
damaged sampled 's/"file":"f.c"/"file":null/' 'schema: '
damaged sampled 's/("exporter":[^,]*),("name":[^,]*),/$2,$1,/' 'keys of the document'
damaged sampled 's/"weights":\[10000000,/"weights":[/' '4 samples and 3 weights'
damaged sampled 's/\[0,1,2,3\]/[0,1,2,4]/' 'sample 1: frame 4 of 4'
damaged sampled 's/30000000,10000000\]/0,10000000]/' 'sample 2: weight 0'
damaged sampled 's/30000000,10000000\]/9007199254740992,10000000]/' 'sample 2: weight 9007199254740992'
damaged sampled 's/("profiles":\[)(.*)(\],"shared")/$1$2,$2$3/' 'has the name of profile 0'
damaged sampled 's/"name":"run"/"name":"main"/' 'has name and file of frame 0'
damaged sampled 's/"endValue":60000000/"endValue":59999999/' 'beyond endValue'
damaged sampled 's/"endValue":60000000/"endValue":60000001/' 'the last profile ends at 60000000'
damaged sampled 's/("profiles":\[)(.*)(\],"shared")/$1$2,$2$3/; s/worker 1/worker 2/; s/(.*endValue":)6/${1}7/' \
    'not that of the first'
damaged sampled 's/,\[\],/,[],[],/; s/30000000,10000000\]/20000000,10000000,10000000]/' 'a gap follows a gap'
damaged sampled 's/nanoseconds/none/' 'unit none'
damaged sampled 's/"profiles"/ "profiles"/' 'not the shortest form'
damaged sampled 's/10000000/1e7/' 'not the shortest form'
damaged sampled 's/\n//' 'does not end in one LF'
damaged sampled 's/\n/\n\n/' 'does not end in one LF'
damaged sampled 's/"run"/"r\\u0000n"/' 'is not clean'
damaged sampled 's/"run"/"r\xffn"/' 'is not UTF-8'
damaged sampled 's/,\[0,1\]\]/,[0,1]/' 'is not JSON'
damaged evented 's/"at":60000000/"at":59000000/g' 'the last profile ends at 59000000'
damaged evented 's/"at":20000000/"at":9000000/' 'at 9000000 after 10000000'
damaged evented 's/,\{"type":"C","frame":0,"at":60000000\}//' '1 frames are open at the end'
damaged evented 's/\{"type":"C","frame":3,/{"type":"C","frame":2,/' 'which is not the innermost one'
damaged evented 's/\{"type":"O","frame":0,"at":0\},/{"type":"C","frame":0,"at":0},/' 'nothing is open'
damaged evented 's/(\{"type":"O","frame":3,"at":10000000\})/{"type":"C","frame":2,"at":10000000},{"type":"O","frame":2,"at":10000000},$1/' \
    'closed and opened again'
speedscope_refused damaged-0.json "${damage_texts[0]}"
! node "$_speedscope_folder/speedscope_check.mjs" damaged-*.json >out 2>faults || die "damaged documents are accepted"
[ ! -s out ] || die "a damaged document is accepted: $(head -2 out)"
for i in "${!damage_texts[@]}"; do
    grep -F "speedscope_check: damaged-$i.json: " faults | grep -qF -e "${damage_texts[i]}" ||
        die "not refused for: ${damage_texts[i]}: $(grep -F "damaged-$i.json: " faults)"
done

# Names as spool2folded writes them, and stacks that differ in the file alone.
perl -pe 's/"run"/"r;un 12"/; s/"name":"main"/"name":"#main"/; s/"name":"f","file":"f.c"/"name":"g","file":"\/opt\/g"/' \
    sampled.json >names.json
equal "folded names" "$(speedscope_folded names.json 0)" '_#main;r:un_12 10000000
_#main;r:un_12;g 10000000
_#main;r:un_12;g;g 10000000'

# ---- profiles ----

encode() { # TEXT: a profile on standard output
    protoc --proto_path="$(dirname "$0")" --encode=perftools.profiles.Profile profile.proto <"$1"
}
cp "$documents/worked.profile.txt" worked.txt
encode worked.txt >worked.pb
gzip -nc worked.pb >worked.pb.gz
for file in worked.pb worked.pb.gz; do
    pprof_check $file
    equal "samples of $file" "$(pprof_total $file samples)" 3
    equal "nanoseconds of $file" "$(pprof_total $file cpu)" 30000000
    equal "functions of $file" "$(pprof_functions $file | paste -sd ' ')" 'f g main run'
    equal "folded $file" "$(pprof_folded $file samples)" 'main;run 1
main;run;f 1
main;run;f;g 1'
    equal "labels of $file" "$(pprof_labels $file cpu)" 'pid=#40 pid 30000000
process=app 30000000
tid=#41 tid 30000000'
    equal "top of $file" "$(pprof_flat_cum $file cpu)" '10000000 20000000 f
10000000 10000000 g
0 30000000 main
10000000 30000000 run'
    equal "total of $file" "$(pprof_top_total $file samples) $(pprof_top_total $file cpu)" '3 30000000'
done
pprof_proto merged.pb.gz worked.pb worked.pb.gz
equal merged "$(pprof_total merged.pb.gz samples) $(pprof_folded merged.pb.gz samples | tail -n 1)" '6 main;run;f;g 2'

# fails TEXT COMMAND...: the command fails and says TEXT.
fails() {
    local text=$1
    shift
    ! ("$@") >out 2>&1 || die "succeeds: $*"
    grep -qF -e "$text" out || die "$* fails, but does not say $text: $(head -3 out)"
}
# refused SUBSTITUTION TEXT: pprof_check refuses the profile with this done to its text.
refused() {
    perl -pe "$1" worked.txt >damaged.txt
    ! cmp -s worked.txt damaged.txt || die "nothing damaged: $1"
    encode damaged.txt >damaged.pb
    fails "$2" pprof_check damaged.pb
}
refused 's/location \{ id: 4/location { id: 5/' 'location 4 has the id 5'
refused 's/location_id: 4/location_id: 9/' 'location 9 is referred to and is not there'
refused 's/^sample .*location_id: 4.*\n//' 'location 4 is not used'
refused 's/location_id: 1 location_id: 2/location_id: 2 location_id: 1/' 'location 2 is used before 1'
refused 's/mapping_id: 1/mapping_id: 2/' 'mapping 2 is referred to'
refused 's/name: 11/name: 99/' 'name is string 99 of 15'
refused 's/name: 11/name: 11 system_name: 11/' 'system_name is the name'
refused 's/name: 13 filename: 14 start_line: 9/name: 10 filename: 14 start_line: 3/' 'function 4 is function 1 again'
refused 's/location_id: 4/location_id: 1/' 'sample 2 is sample 1 again'
refused 's/value: 1 value/value: 0 value/' 'no value above 0'
refused 's/(value: 1) value: 10000000/$1/' '1 values'
refused 's/str: 7/str: 7 num: 3/' 'is number and string'
refused 's/label \{ key: 5 (.*?)\} (label .*)\}$/$2 label { key: 5 $1} }/' 'labels process tid pid'
refused 's/"main"/"run"/' 'string twice'
refused 's/"main"/"ma\\nin"/' 'string with a control'
refused 's/^period_type.*//' 'no period_type'
refused 's/^default_sample_type.*//' 'default_sample_type'
perl -pe 's/g\x72un/g\xff\xfe/; s/main/ma\xffn/' worked.pb >latin.pb
fails 'protoc' pprof_decode latin.pb
{ cat worked.pb && printf '\x80\x01\x05'; } >unknown.pb
fails 'unknown fields' pprof_decode unknown.pb
head -c 100 worked.pb.gz >cut.pb.gz
fails 'gzip refuses it' pprof_decode cut.pb.gz
cat worked.pb.gz worked.pb.gz >two.pb.gz
fails 'behind the gzip member' pprof_check two.pb.gz
cp worked.pb dated && gzip -Nc dated >named.pb.gz
fails 'gzip header' pprof_check named.pb.gz

# pprof looks for the binary of a mapping that has nothing, and says that it is not there.
sed '/^mapping/s/has_[a-z_]*: true//g' worked.txt >open.txt
encode open.txt >open.pb
fails 'says: ' expect_silent -top open.pb
expect_silent -traces worked.pb >traces
grep -q 'g (inline)' traces || die "no inlined g: $(<traces)"
