# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # spoolmake is of _common.sh
# Captures as a fleet makes them, and the commands of README.md's section about it; to be sourced after _common.sh.

sets=24 # of addresses

# captures N FOLDER: as many spools of two programs and a plugin, named HOST-TIME.spool, each of a time of its own.
# Sets of addresses overlap, and captures that follow one another have different ones.
captures() {
    local i app pid at names=(ladder-O0 ladder-O2)
    local ids=(d76cfb6c818c9471fcb8f5fba6189fc99595d1ec 94d81b76857beec8f87aa226f63ad902468a63f7)
    mkdir -p "$2"
    for ((i = 0; i < sets && i < $1; i++)); do
        app=$((i % 2)) pid=$((1000 + i)) at=$((0x1220 + 40 * i))
        # Some recorders tell build ids; of the others' files the manifests know them.
        make "$2/$i.set" <<END
version $((3 + i % 3 / 2))
interval 10ms
start 1700000000000000
module app $pid 0x55e000400000-0x55e000500000 0 /opt/demo/${names[app]}
module plugin $pid 0x7f0000000000-0x7f0000100000 0 /opt/demo/plugin.so
$( ((i % 4 < 2)) || echo "note $pid build-id \"0 ${ids[app]}\"")
sample 10ms $pid $pid app+$at app+$((at + 4))
sample +10ms $pid $pid plugin+$((0x1110 + 8 * i)) app+$((at + 0x40))
samples 3 10ms 1s $pid $pid plugin+$((0x111c + 8 * i)) app+$((at + 0x80))
END
    done
    # The start is a number of eight bytes behind the magic ones.
    perl -e '
        my ($count, $folder, $sets) = @ARGV;
        for my $i (0 .. $count - 1) {
            open my $in, "<:raw", "$folder/" . $i % $sets . ".set" or die;
            my $spool = do { local $/; <$in> };
            my $start = 1700000000000000 + $i * 60000000;
            substr($spool, 8, 8) = join "", map { chr(($start >> 7 * $_ & 127) | ($_ < 7 ? 128 : 0)) } 0 .. 7;
            my $name = sprintf "$folder/host%d-%d.spool", $i % 7, $start / 1e6;
            open my $out, ">:raw", $name or die;
            print $out $spool;
            close $out or die;
        }' "$1" "$2" $sets
    rm "$2"/*.set
}

# readme WORD: the command of the section "A fleet" that has WORD in it. Commands have empty lines between them.
readme() {
    awk -v word="$1" '
        function flush() { if (index(block, word)) { printf "%s", block; found = 1 } block = "" }
        /^## / { flush(); inside = $0 == "## A fleet" }
        inside && /^    / { block = block substr($0, 5) "\n"; next }
        inside { flush() }
        END { exit !found }' "$SRC/README.md" || die "README.md has no command with $1"
}
