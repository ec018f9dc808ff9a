-- SPDX-License-Identifier: BSD-2-Clause
-- Wireshark dissector of CSA, the protocol of the device albedo0 (docs/PROTOCOL.md). Outside a packet is RoCEv2, which
-- Wireshark (4.0 or later) knows: this takes over where the DETH ends. It also tells Wireshark that the UDP ports of process slots
-- other than 0 carry RoCEv2, unless they carry something else, and shows the connection manager's datagrams as such.
--
-- Filters begin with albedo_csa, for instance: albedo_csa.report.syndrome != 0x1f, albedo_csa.flag.probing == 1.
--
-- What was damaged on its way is marked (albedo_csa.icrc_bad) if the protocol's preference says that ICRCs are to be checked, which
-- takes long: tshark -o albedo_csa.check_icrc:TRUE.

-- A second copy of this script, named by -X beside an installed one, leaves all to the first.
local is_first, csa = pcall(Proto, "albedo_csa", "Albedo CSA")
if not is_first then
    return
end
local slots = Proto("albedo_slot", "Albedo process slot")

local ROCE_PORT = 4791 -- that of slot 0
local SLOT_PORT_FIRST, SLOT_PORT_LAST = ROCE_PORT + 1, ROCE_PORT + 255 -- the other slots'
local OPCODE, QPN_INDEX, QKEY = 0x64, 2, 0x00435341
local CM_QPN_INDEX, CM_QKEY, MAD_BYTES = 3, 0x80010000, 256
local READ, WRITE_IMM, TXN_END = 6, 5, 11
local HEADER_BYTES, ENTRY_BYTES, COOKIE_BYTES = 20, 20, 16
local BITMAP_WORDS, ENTRIES = 32, 64
local PROPOSAL_BYTES, COMPARES, COMPARE_BYTES = 64, 8, 32

local TYPES = {
    [0x01] = "REQUEST", [0x02] = "RESPONSE", [0x03] = "DATAGRAM", [0x10] = "REPORT", [0x11] = "PATHS",
    [0x12] = "PROBE", [0x13] = "PING", [0x14] = "PONG", [0x15] = "RESET", [0x16] = "HELLO", [0x17] = "COOKIE",
    [0x18] = "CNP", [0x19] = "HOLDS", [0x1a] = "TRIMMED", [0x20] = "TXN", [0x21] = "VERDICT",
}
local OPS = {
    [1] = "SEND", [2] = "SEND_IMM", [3] = "SEND_INV", [4] = "WRITE", [5] = "WRITE_IMM", [6] = "READ",
    [7] = "CMP_SWAP", [8] = "FETCH_ADD", [9] = "ATOMIC_WRITE", [10] = "TXN_WRITE",
    [11] = "TXN_END", [12] = "PARTIAL_WRITE", [13] = "PARTIAL_WRITE_IMM", [16] = "READ_DATA", [17] = "RESULT",
}
local REASONS = {[1] = "wrong epoch", [2] = "no such queue pair, or not proven"}
local COMMANDS = {[1] = "ASK", [2] = "COMMIT", [3] = "ABORT"}
local VERDICTS = {
    [1] = "PENDING", [2] = "REFLECTED", [3] = "COMMITTED", [4] = "ABORTED", [5] = "CORRUPT", [6] = "UNKNOWN",
}
local VERDICT_REASONS = {
    [0] = "none", [1] = "digest", [2] = "busy", [3] = "precondition", [4] = "rejected", [5] = "access",
    [6] = "too large", [7] = "no memory", [8] = "malformed", [9] = "unsupported", [10] = "lease", [11] = "deadline",
    [12] = "withdrawn", [13] = "region gone", [14] = "journal", [15] = "peer gone", [16] = "copy", [17] = "lost",
}
local NAKS = {[0] = "PSN sequence error", "invalid request", "remote access error", "remote operational error"}

-- ---- fields ---------------------------------------------------------------------------------------------------------

local fields, names = csa.fields, {}

local function field(kind, name, label, ...)
    names[name] = ProtoField[kind]("albedo_csa." .. name, label, ...)
    fields[name] = names[name]
end

field("uint8", "version", "Version", base.DEC, nil, 0xf0)
field("uint8", "flags", "Flags", base.HEX)
field("uint16", "key_id", "Key id", base.HEX)
field("uint32", "source_epoch", "Source epoch", base.HEX)
field("uint32", "destination_epoch", "Destination epoch", base.HEX)
field("uint32", "timestamp", "Timestamp (ns)", base.DEC)
field("uint8", "path", "Path", base.DEC)
field("uint16", "rtt_code", "Round-trip time (encoded)", base.HEX)
field("uint64", "rtt", "Round-trip time (ns)", base.DEC)
field("uint24", "sequence", "Sequence on the path", base.DEC)
field("uint8", "source_slot", "Source slot", base.DEC)
field("uint8", "destination_slot", "Destination slot", base.DEC)

field("uint8", "type", "Type", base.HEX, TYPES)
field("uint8", "op", "Operation", base.DEC, OPS)
field("uint16", "payload_bytes", "Payload bytes", base.DEC)
field("uint24", "dest_qpn", "Destination QPN", base.HEX)
field("uint8", "segment_flags", "Flags", base.HEX)
field("bool", "flag.solicited", "Solicited", 8, nil, 0x01)
field("bool", "flag.report_now", "Report now", 8, nil, 0x02)
field("bool", "flag.probing", "Probing", 8, nil, 0x04)
field("bool", "flag.xrc", "XRC", 8, nil, 0x08)
field("bool", "flag.last", "Last of its message", 8, nil, 0x10)
field("bool", "flag.reflect", "A verdict is asked for", 8, nil, 0x20)
field("bool", "flag.uc", "UC", 8, nil, 0x40)
field("uint24", "psn", "PSN", base.DEC)
field("uint24", "index", "Index in the message", base.DEC)
field("uint32", "total_bytes", "Bytes of the message", base.DEC)
field("uint32", "offset", "Offset in the message", base.DEC)
field("uint24", "message_psn", "First PSN of the message", base.DEC)
field("uint32", "xrc_srqn", "XRC SRQ number", base.HEX)
field("uint64", "va", "Address", base.HEX)
field("uint32", "rkey", "Remote key", base.HEX)
field("uint32", "acked", "Response stream held before PSN", base.DEC)
field("uint64", "operand", "Operand", base.HEX)
field("uint64", "compare", "Compare", base.HEX)
field("uint32", "recv_number", "Receive number", base.DEC)
field("uint32", "imm", "Immediate", base.HEX)
field("uint32", "invalidate_rkey", "Key to invalidate", base.HEX)
field("uint32", "request_psn", "PSN of the request", base.DEC)
field("uint64", "original", "Original value", base.HEX)
field("uint32", "qkey", "Queue key", base.HEX)
field("uint24", "src_qpn", "Source QPN", base.HEX)
field("uint32", "message", "Number of the message", base.DEC)
field("uint32", "txn.mode", "Mode", base.HEX, {[0] = "staged", [1] = "in place"})
field("bytes", "payload", "Payload")

field("uint8", "txn.command", "Command", base.DEC, COMMANDS)
field("uint64", "txn.initiator", "Initiator", base.HEX)
field("uint64", "txn.number", "Number of the transaction", base.DEC)
field("uint64", "txn.keeper", "Keeper", base.HEX)
field("uint64", "txn.low_water", "Low-water mark", base.DEC)
field("bytes", "txn.digest", "Digest")
field("uint64", "txn.bytes", "Bytes of all parts", base.DEC)
field("uint32", "txn.lease", "Lease (us)", base.DEC, {[0] = "the target's default"})
field("uint32", "txn.parts", "Parts", base.DEC)
field("uint8", "txn.flags", "Flags", base.HEX)
field("bool", "txn.in_place", "In place", 8, nil, 0x01)
field("bool", "txn.notify", "Notify", 8, nil, 0x02)
field("bool", "txn.solicited", "Solicited", 8, nil, 0x04)
field("uint8", "txn.compares", "Compared words", base.DEC)
field("uint64", "txn.compare.va", "Address of a word", base.HEX)
field("uint32", "txn.compare.rkey", "Remote key", base.HEX)
field("uint64", "txn.compare.expected", "Expected", base.HEX)
field("uint64", "txn.compare.mask", "Mask", base.HEX)
field("uint8", "txn.level", "Level", base.DEC, {[2] = "reflected", [3] = "committed"})
field("uint8", "verdict.state", "State", base.DEC, VERDICTS)
field("uint8", "verdict.reason", "Reason", base.DEC, VERDICT_REASONS)
field("uint64", "verdict.placed", "Placed at (ns of the target's clock)", base.DEC)
field("uint64", "verdict.decided", "Decided at", base.DEC)
field("uint64", "verdict.visible", "Visible at", base.DEC)
field("uint64", "verdict.now", "Now", base.DEC)

field("bool", "response", "About the response stream", 8, nil, 0x01)
field("bool", "report.overdue", "Something is overdue, or was probed for", 8, nil, 0x02)
field("bool", "report.full", "There was no room for something that came", 8, nil, 0x04)
field("uint8", "report.page", "Page, of 2048 segments", base.DEC, nil, 0xf8)
field("uint8", "report.words", "Words", base.DEC)
field("uint8", "report.syndrome", "Syndrome", base.HEX)
field("uint24", "report.qpn", "QPN", base.HEX)
field("uint16", "report.number", "Number", base.DEC)
field("uint24", "report.cumulative", "Cumulative PSN", base.DEC)
field("uint64", "report.bitmap", "Bitmap", base.HEX)
field("string", "report.held", "Held beyond it")

field("bool", "paths.more", "More paths are reported elsewhere", 8, nil, 0x80)
field("uint8", "paths.entries", "Entries", base.DEC, nil, 0x7f)
field("uint8", "paths.share", "Share (how strongly to answer congestion, in 1/32)", base.DEC, {[0] = "not known"})
field("uint8", "paths.first", "Tells of paths from", base.DEC)
field("uint32", "paths.credit", "Credit (bytes)", base.DEC, {[0xffffffff] = "no limit"})
field("uint8", "paths.path", "Path", base.DEC)
field("uint24", "paths.settled", "Settled before sequence", base.DEC)
field("uint32", "paths.echo", "Echo (ns)", base.DEC)
field("uint32", "paths.delay", "Delay (ns)", base.DEC)
field("uint32", "paths.received", "Received", base.DEC)
field("uint32", "paths.marked", "Marked", base.DEC)

field("bool", "holds.question", "What is held is asked for", 8, nil, 0x01)
field("bool", "holds.complete", "All of it is held, and it is completed", 8, nil, 0x02)
field("uint8", "holds.words", "Words", base.DEC)
field("uint32", "holds.first", "First segment", base.DEC)
field("uint64", "holds.bitmap", "Bitmap", base.HEX)
field("string", "holds.held", "Segments held")

field("uint24", "probe.next", "Next PSN", base.DEC)
field("uint8", "trimmed.path", "Path of the packet", base.DEC)
field("uint24", "trimmed.sequence", "Sequence of the packet", base.DEC)
field("uint16", "ping.padding", "Padding bytes", base.DEC)
field("uint16", "pong.bytes", "UDP payload of the PING", base.DEC)
field("uint8", "reset.reason", "Reason", base.DEC, REASONS)
field("uint32", "reset.epoch", "Epoch that was named", base.HEX)
field("uint16", "cookie_bytes", "Cookie bytes", base.DEC)
field("bytes", "cookie", "Cookie")

local bad = ProtoExpert.new("albedo_csa.bad", "The rest cannot be understood", expert.group.MALFORMED,
                            expert.severity.ERROR)
local icrc_bad = ProtoExpert.new("albedo_csa.icrc_bad", "The ICRC is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
csa.experts = {bad, icrc_bad}
csa.prefs.check_icrc = Pref.bool("Check the ICRC", false, "Whether the invariant CRC of each packet is computed")

local bth_opcode = Field.new("infiniband.bth.opcode")
local bth_dest_qpn = Field.new("infiniband.bth.destqp")
local bth_pad = Field.new("infiniband.bth.padcnt")
local bth_version = Field.new("infiniband.bth.tver")
local bth_psn = Field.new("infiniband.bth.psn")
local deth_qkey = Field.new("infiniband.deth.q_key")
local deth_src_qpn = Field.new("infiniband.deth.srcqp")
local udp_payload, udp_length = Field.new("udp.payload"), Field.new("udp.length")
local udp_source, udp_destination = Field.new("udp.srcport"), Field.new("udp.dstport")
local ADDRESSES = {
    {source = Field.new("ip.src"), destination = Field.new("ip.dst")},
    {source = Field.new("ipv6.src"), destination = Field.new("ipv6.dst")},
}

-- ---- segments -------------------------------------------------------------------------------------------------------

-- What follows the fixed part, in order: field, bytes.
local MEMORY = {{"va", 8}, {"rkey", 4}}
local OP_FIELDS = {
    [1] = {{"recv_number", 4}},
    [2] = {{"recv_number", 4}, {"imm", 4}},
    [3] = {{"recv_number", 4}, {"invalidate_rkey", 4}},
    [4] = MEMORY,
    [5] = {MEMORY[1], MEMORY[2], {"recv_number", 4}, {"imm", 4}},
    [6] = {MEMORY[1], MEMORY[2], {"acked", 4}},
    [7] = {MEMORY[1], MEMORY[2], {"acked", 4}, {"operand", 8}, {"compare", 8}},
    [8] = {MEMORY[1], MEMORY[2], {"acked", 4}, {"operand", 8}, {"compare", 8}},
    [9] = {MEMORY[1], MEMORY[2], {"acked", 4}},
    [10] = {MEMORY[1], MEMORY[2], {"txn.number", 8}, {"txn.mode", 4}},
    [11] = {},
    [12] = {MEMORY[1], MEMORY[2], {"message", 4}},
    [13] = {MEMORY[1], MEMORY[2], {"imm", 4}, {"message", 4}},
    [16] = {{"request_psn", 4}},
    [17] = {{"request_psn", 4}, {"original", 8}},
}
local SINGLE_PAYLOAD = {[6] = 0, [7] = 0, [8] = 0, [9] = 8, [17] = 0} -- of what is one segment
local REFLECT_FIELDS = {{"txn.initiator", 8}, {"txn.number", 8}, {"txn.digest", 16}, {"txn.low_water", 8}}
local DATAGRAM_FIELDS = {[1] = {}, [2] = {{"imm", 4}}}

local function fields_bytes(list)
    local bytes = 0
    for _, entry in ipairs(list) do
        bytes = bytes + entry[2]
    end
    return bytes
end

local function add_fields(tree, tvb, at, list)
    for _, entry in ipairs(list) do
        tree:add(names[entry[1]], tvb(at, entry[2]))
        at = at + entry[2]
    end
    return at
end

local function add_flags(tree, tvb, at, is_datagram)
    local node = tree:add(names.segment_flags, tvb(at, 1))
    node:add(names["flag.solicited"], tvb(at, 1))
    if is_datagram then
        return
    end
    for _, flag in ipairs({"report_now", "probing", "xrc", "last", "reflect", "uc"}) do
        node:add(names["flag." .. flag], tvb(at, 1))
    end
end

local function has_flag(flags, value)
    return math.floor(flags / value) % 2 == 1
end

local function add_payload(tree, tvb, at, bytes)
    if bytes > 0 then
        tree:add(names.payload, tvb(at, bytes))
    end
end

-- The functions for a kind of frame get what there is from at to the packet's end. They return the bytes of the frame
-- and a line about it; nil if it does not make sense, and an engine would drop it and the rest of the packet.

local function datagram(tree, tvb, at, left)
    local list = DATAGRAM_FIELDS[tvb(at + 1, 1):uint()]
    if not list or left < 16 + fields_bytes(list) then
        return nil
    end
    local payload = tvb(at + 2, 2):uint()
    tree:add(names.op, tvb(at + 1, 1))
    tree:add(names.payload_bytes, tvb(at + 2, 2))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    add_flags(tree, tvb, at + 7, true)
    tree:add(names.qkey, tvb(at + 8, 4))
    tree:add(names.src_qpn, tvb(at + 12, 3))
    local past = add_fields(tree, tvb, at + 16, list)
    if past + payload > at + left then
        return nil
    end
    add_payload(tree, tvb, past, payload)
    return past + payload - at, string.format("UD %s QP=0x%06x %d bytes", OPS[tvb(at + 1, 1):uint()],
                                              tvb(at + 4, 3):uint(), payload)
end

local function add_fixed(tree, tvb, at)
    tree:add(names.op, tvb(at + 1, 1))
    tree:add(names.payload_bytes, tvb(at + 2, 2))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    add_flags(tree, tvb, at + 7, false)
    tree:add(names.psn, tvb(at + 8, 3))
    tree:add(names.index, tvb(at + 12, 3))
    tree:add(names.total_bytes, tvb(at + 16, 4))
end

-- The payload of TXN_END. One that is none ends the queue pair, and not the packet.
local function add_proposal(tree, tvb, at, bytes)
    local compares = bytes >= PROPOSAL_BYTES and tvb(at + 61, 1):uint()
    if not compares or compares > COMPARES or bytes ~= PROPOSAL_BYTES + COMPARE_BYTES * compares then
        tree:add_proto_expert_info(bad, "The proposal contradicts its length")
        return
    end
    add_fields(tree, tvb, at, {{"txn.initiator", 8}, {"txn.number", 8}, {"txn.low_water", 8}, {"txn.digest", 16},
                               {"txn.bytes", 8}, {"txn.lease", 4}, {"txn.parts", 4}, {"imm", 4}, {"txn.flags", 1},
                               {"txn.compares", 1}, {"txn.level", 1}})
    tree:add(names["txn.in_place"], tvb(at + 60, 1))
    tree:add(names["txn.notify"], tvb(at + 60, 1))
    tree:add(names["txn.solicited"], tvb(at + 60, 1))
    for word = at + PROPOSAL_BYTES, at + bytes - COMPARE_BYTES, COMPARE_BYTES do
        add_fields(tree, tvb, word, {{"txn.compare.va", 8}, {"txn.compare.rkey", 4}})
        add_fields(tree, tvb, word + 16, {{"txn.compare.expected", 8}, {"txn.compare.mask", 8}})
    end
end

-- The payload lies within the message, and what has none has none.
local function is_geometry_good(op, is_last, index, payload, total)
    if SINGLE_PAYLOAD[op] then
        return is_last and index == 0 and payload == SINGLE_PAYLOAD[op]
    end
    if is_last then
        return index == 0 and payload == total or index > 0 and payload > 0 and payload < total
    end
    return payload > 0 and payload % 4 == 0 and (index + 1) * payload < total
end

local function segment(tree, tvb, at, left)
    local kind, op = tvb(at, 1):uint(), tvb(at + 1, 1):uint()
    local list = OP_FIELDS[op]
    if not list or (op >= 16) ~= (kind == 2) or left < 20 then
        return nil
    end
    local payload, flags = tvb(at + 2, 2):uint(), tvb(at + 7, 1):uint()
    local psn, index, total = tvb(at + 8, 3):uint(), tvb(at + 12, 3):uint(), tvb(at + 16, 4):uint()
    local has_srqn, is_last = kind == 1 and has_flag(flags, 8), has_flag(flags, 16)
    local reflects = kind == 1 and has_flag(flags, 32)
    if left < 20 + (has_srqn and 4 or 0) + fields_bytes(list) + (reflects and fields_bytes(REFLECT_FIELDS) or 0) then
        return nil
    end
    add_fixed(tree, tvb, at)
    if not is_geometry_good(op, is_last, index, payload, total) or reflects and not (is_last and op <= WRITE_IMM) then
        return nil
    end
    tree:add(names.message_psn, (psn - index) % 0x1000000):set_generated()
    local past = at + 20
    if has_srqn then
        tree:add(names.xrc_srqn, tvb(past, 4))
        past = past + 4
    end
    past = add_fields(tree, tvb, past, list)
    if reflects then
        past = add_fields(tree, tvb, past, REFLECT_FIELDS)
    end
    if past + payload > at + left then
        return nil
    end
    if op == TXN_END and index == 0 and is_last then
        add_proposal(tree, tvb, past, payload)
    end
    if payload > 0 then
        tree:add(names.offset, is_last and total - payload or index * payload):set_generated()
    end
    add_payload(tree, tvb, past, payload)
    local line = string.format("%s QP=0x%06x PSN=%d", OPS[op], tvb(at + 4, 3):uint(), psn)
    if payload > 0 then
        line = line .. string.format(" %d/%d bytes", payload, total)
    elseif op == READ then
        line = line .. string.format(" %d bytes", total)
    end
    return past + payload - at, line .. (is_last and " last" or "") .. (has_flag(flags, 4) and " probing" or "") ..
           (has_flag(flags, 2) and " report!" or "")
end

-- ---- reports and paths ----------------------------------------------------------------------------------------------

local function syndrome_text(syndrome)
    local class, value = math.floor(syndrome / 32) % 4, syndrome % 32
    if class == 0 then
        return "ACK"
    elseif class == 1 then
        return "RNR, timer " .. value
    elseif class == 3 then
        return "NAK, " .. (NAKS[value] or "code " .. value)
    end
    return "reserved"
end

-- "257-259, 261": of numbers that come round at past, those whose bits are set.
local function held_text(tvb, at, words, base, past)
    local parts, first, count = {}, nil, 0
    for i = 0, 64 * words do
        local is_set = false
        if i < 64 * words then
            local byte = tvb(at + 8 * math.floor(i / 64) + 7 - math.floor(i % 64 / 8), 1):uint()
            is_set = math.floor(byte / 2 ^ (i % 8)) % 2 == 1
        end
        count = count + (is_set and 1 or 0)
        if is_set and not first then
            first = i
        elseif first and not is_set then
            local low, high = (base + first) % past, (base + i - 1) % past
            parts[#parts + 1] = low == high and tostring(low) or low .. "-" .. high
            first = nil
        end
    end
    return table.concat(parts, ", "), count
end

local function report(tree, tvb, at, left)
    local words = tvb(at + 2, 1):uint()
    if words > BITMAP_WORDS or left < 12 + 8 * words then
        return nil
    end
    local syndrome, cumulative = tvb(at + 3, 1):uint(), tvb(at + 8, 3):uint()
    local page = tvb(at + 1, 1):bitfield(0, 5)
    tree:add(names.response, tvb(at + 1, 1))
    tree:add(names["report.overdue"], tvb(at + 1, 1))
    tree:add(names["report.full"], tvb(at + 1, 1))
    tree:add(names["report.page"], tvb(at + 1, 1))
    tree:add(names["report.words"], tvb(at + 2, 1))
    tree:add(names["report.syndrome"], tvb(at + 3, 1)):append_text(" (" .. syndrome_text(syndrome) .. ")")
    tree:add(names["report.qpn"], tvb(at + 4, 3))
    tree:add(names["report.number"], tvb(at + 7, 5), tvb(at + 7, 1):uint() + 256 * tvb(at + 11, 1):uint())
    tree:add(names["report.cumulative"], tvb(at + 8, 3))
    for i = 0, words - 1 do
        tree:add(names["report.bitmap"], tvb(at + 12 + 8 * i, 8))
    end
    local line = string.format("REPORT QP=0x%06x cum=%d %s", tvb(at + 4, 3):uint(), cumulative, syndrome_text(syndrome))
    if words > 0 then
        local text, count = held_text(tvb, at + 12, words, cumulative + 64 * BITMAP_WORDS * page, 0x1000000)
        tree:add(names["report.held"], tvb(at + 12, 8 * words), text):set_generated()
        line = line .. " +" .. count .. (page > 0 and " on page " .. page or "")
    end
    return 12 + 8 * words, line
end

local function holds(tree, tvb, at, left)
    local flags, words, first = tvb(at + 1, 1):uint(), tvb(at + 2, 1):uint(), left >= 16 and tvb(at + 12, 4):uint()
    if words > BITMAP_WORDS or left < 16 + 8 * words then
        return nil
    end
    tree:add(names["holds.question"], tvb(at + 1, 1))
    tree:add(names["holds.complete"], tvb(at + 1, 1))
    tree:add(names["holds.words"], tvb(at + 2, 1))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    tree:add(names.message, tvb(at + 8, 4))
    tree:add(names["holds.first"], tvb(at + 12, 4))
    for i = 0, words - 1 do
        tree:add(names["holds.bitmap"], tvb(at + 16 + 8 * i, 8))
    end
    local line = string.format("HOLDS%s QP=0x%06x message=%d", has_flag(flags, 1) and "?" or "", tvb(at + 4, 3):uint(),
                               tvb(at + 8, 4):uint())
    if words > 0 then
        local text, count = held_text(tvb, at + 16, words, first, 0x100000000)
        tree:add(names["holds.held"], tvb(at + 16, 8 * words), text):set_generated()
        line = line .. string.format(" %d from %d", count, first)
    end
    return 16 + 8 * words, line .. (has_flag(flags, 2) and " complete" or "")
end

-- A frame that does not tell of all paths says of which.
local function scope_text(tvb, at, entries, has_more)
    local first = tvb(at + 3, 1):uint()
    if has_more then
        return string.format(" of %d-%d", first, tvb(at + 8 + ENTRY_BYTES * (entries - 1), 1):uint())
    end
    return first > 0 and string.format(" from %d", first) or ""
end

local function paths(tree, tvb, at, left)
    local entries, has_more = tvb(at + 1, 1):bitfield(1, 7), tvb(at + 1, 1):bitfield(0, 1) == 1
    if entries > ENTRIES or has_more and entries == 0 or left < 8 + ENTRY_BYTES * entries then
        return nil
    end
    tree:add(names["paths.more"], tvb(at + 1, 1))
    tree:add(names["paths.entries"], tvb(at + 1, 1))
    tree:add(names["paths.share"], tvb(at + 2, 1))
    tree:add(names["paths.first"], tvb(at + 3, 1))
    tree:add(names["paths.credit"], tvb(at + 4, 4))
    for i = 0, entries - 1 do
        local entry = at + 8 + ENTRY_BYTES * i
        local node = tree:add(csa, tvb(entry, ENTRY_BYTES), string.format(
            "Path %d: settled before %d, received %d, marked %d", tvb(entry, 1):uint(), tvb(entry + 1, 3):uint(),
            tvb(entry + 12, 4):uint(), tvb(entry + 16, 4):uint()))
        node:add(names["paths.path"], tvb(entry, 1))
        node:add(names["paths.settled"], tvb(entry + 1, 3))
        node:add(names["paths.echo"], tvb(entry + 4, 4))
        node:add(names["paths.delay"], tvb(entry + 8, 4))
        node:add(names["paths.received"], tvb(entry + 12, 4))
        node:add(names["paths.marked"], tvb(entry + 16, 4))
    end
    return 8 + ENTRY_BYTES * entries, string.format("PATHS %d%s", entries, scope_text(tvb, at, entries, has_more))
end

-- ---- the short ones -------------------------------------------------------------------------------------------------

local function probe(tree, tvb, at, left)
    if left < 12 then
        return nil
    end
    tree:add(names.response, tvb(at + 1, 1))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    tree:add(names["probe.next"], tvb(at + 8, 3))
    return 12, string.format("PROBE QP=0x%06x next=%d", tvb(at + 4, 3):uint(), tvb(at + 8, 3):uint())
end

local function ping(tree, tvb, at, left)
    local padding = tvb(at + 2, 2):uint()
    if left < 4 + padding then
        return nil
    end
    tree:add(names["ping.padding"], tvb(at + 2, 2))
    return 4 + padding, "PING +" .. padding
end

local function pong(tree, tvb, at)
    tree:add(names["pong.bytes"], tvb(at + 2, 2))
    return 4, "PONG " .. tvb(at + 2, 2):uint()
end

local function reset(tree, tvb, at, left)
    if left < 8 then
        return nil
    end
    tree:add(names["reset.reason"], tvb(at + 1, 1))
    tree:add(names["reset.epoch"], tvb(at + 4, 4))
    return 8, "RESET: " .. (REASONS[tvb(at + 1, 1):uint()] or "unknown reason")
end

local function hello(tree, tvb, at, left)
    local kind, bytes = TYPES[tvb(at, 1):uint()], tvb(at + 2, 2):uint()
    if left < 4 + COOKIE_BYTES or not (bytes == COOKIE_BYTES or (bytes == 0 and kind == "HELLO")) then
        return nil
    end
    tree:add(names.cookie_bytes, tvb(at + 2, 2))
    if bytes > 0 then
        tree:add(names.cookie, tvb(at + 4, bytes))
    end
    return 4 + COOKIE_BYTES, kind .. ((kind == "HELLO" and bytes > 0) and " with cookie" or "")
end

local function cnp()
    return 4, "CNP"
end

local function trimmed(tree, tvb, at, left)
    if left < 16 then
        return nil
    end
    tree:add(names.response, tvb(at + 1, 1))
    tree:add(names["trimmed.path"], tvb(at + 2, 1))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    tree:add(names.psn, tvb(at + 8, 3))
    tree:add(names["trimmed.sequence"], tvb(at + 12, 3))
    return 16, string.format("TRIMMED QP=0x%06x PSN=%d path=%d sequence=%d", tvb(at + 4, 3):uint(),
                             tvb(at + 8, 3):uint(), tvb(at + 2, 1):uint(), tvb(at + 12, 3):uint())
end

local function txn(tree, tvb, at, left)
    local command = COMMANDS[tvb(at + 1, 1):uint()]
    if left < 40 or not command then
        return nil
    end
    tree:add(names["txn.command"], tvb(at + 1, 1))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    add_fields(tree, tvb, at + 8, {{"txn.initiator", 8}, {"txn.number", 8}, {"txn.keeper", 8}, {"txn.low_water", 8}})
    return 40, string.format("TXN %s QP=0x%06x number=%s", command, tvb(at + 4, 3):uint(),
                             tostring(tvb(at + 16, 8):uint64()))
end

local function verdict(tree, tvb, at, left)
    local state = VERDICTS[tvb(at + 1, 1):uint()]
    if left < 80 or not state then
        return nil
    end
    tree:add(names["verdict.state"], tvb(at + 1, 1))
    tree:add(names["verdict.reason"], tvb(at + 2, 1))
    tree:add(names.dest_qpn, tvb(at + 4, 3))
    add_fields(tree, tvb, at + 8, {{"txn.initiator", 8}, {"txn.number", 8}, {"txn.keeper", 8}, {"txn.digest", 16},
                                   {"verdict.placed", 8}, {"verdict.decided", 8}, {"verdict.visible", 8},
                                   {"verdict.now", 8}})
    local reason = tvb(at + 2, 1):uint()
    return 80, string.format("VERDICT %s%s QP=0x%06x number=%s", state,
                             reason > 0 and " (" .. (VERDICT_REASONS[reason] or reason) .. ")" or "",
                             tvb(at + 4, 3):uint(), tostring(tvb(at + 16, 8):uint64()))
end

local DISSECT = {
    [0x01] = segment, [0x02] = segment, [0x03] = datagram, [0x10] = report, [0x11] = paths, [0x12] = probe,
    [0x13] = ping, [0x14] = pong, [0x15] = reset, [0x16] = hello, [0x17] = hello, [0x18] = cnp,
    [0x19] = holds, [0x1a] = trimmed,
    [0x20] = txn, [0x21] = verdict,
}

-- ---- the packet -----------------------------------------------------------------------------------------------------

local function add_header(tree, tvb)
    local code = tvb(18, 2):uint()
    tree:add(names.version, tvb(0, 1))
    tree:add(names.flags, tvb(1, 1))
    tree:add(names.key_id, tvb(2, 2))
    tree:add(names.source_epoch, tvb(4, 4))
    tree:add(names.destination_epoch, tvb(8, 4))
    tree:add(names.timestamp, tvb(12, 4))
    tree:add(names.path, tvb(16, 1))
    tree:add(names.rtt_code, tvb(18, 2))
    tree:add(names.rtt, UInt64(code % 2048) * UInt64(2 ^ math.floor(code / 2048))):set_generated()
    local source, destination, sequence = deth_src_qpn(), bth_dest_qpn(), bth_psn()
    tree:add(names.source_slot, math.floor(source.value / 65536)):set_generated()
    tree:add(names.destination_slot, math.floor(destination.value / 65536)):set_generated()
    tree:add(names.sequence, sequence.value):set_generated()
end

-- False: another version, or a key; or an outside or an epoch that no engine's packet has. past: where the pad begins.
local function is_header_good(tvb, past)
    return bth_version().value == 0 and deth_src_qpn().value % 65536 == QPN_INDEX and tvb(0, 1):uint() == 0x10 and
           tvb(1, 3):uint() == 0 and tvb(4, 4):uint() ~= 0 and tvb:len() % 4 == 0 and past >= HEADER_BYTES
end

-- Adds the frames; returns a line for each.
local function add_frames(tree, tvb, past)
    local at, lines = HEADER_BYTES, {}
    while at < past do
        local left = past - at
        local kind = left >= 4 and tvb(at, 1):uint() or 0
        local node = tree:add(csa, tvb(at, left), TYPES[kind] or "Unknown frame")
        local dissect, bytes, line = DISSECT[kind], nil, nil
        if left >= 4 then
            node:add(names.type, tvb(at, 1))
        end
        if dissect and left >= 4 then
            bytes, line = dissect(node, tvb, at, left)
        end
        local zeros = bytes and bytes < left and -bytes % 4 or 0
        if not bytes or bytes + zeros > left then
            node:add_proto_expert_info(bad)
            lines[#lines + 1] = "[bad frame]"
            break
        end
        node:set_len(bytes)
        node:set_text(line)
        lines[#lines + 1] = line
        at = at + bytes + zeros
    end
    return lines
end

-- ---- ICRC -----------------------------------------------------------------------------------------------------------

-- By Wireshark's own `bit`, whose results have a sign, since Lua 5.4 (Wireshark 4.4) has no bit32, and 5.2 no operators.
local CRC = {} -- of each byte, by the reflected polynomial of IEEE 802.3
for byte = 0, 255 do
    local crc = byte
    for _ = 1, 8 do
        crc = bit.bxor(bit.rshift(crc, 1), crc % 2 == 1 and 0xedb88320 or 0)
    end
    CRC[byte] = crc
end

local function crc_add(crc, bytes)
    for at = 1, #bytes do
        crc = bit.bxor(bit.rshift(crc, 8), CRC[bit.band(bit.bxor(crc, bytes:byte(at)), 0xff)])
    end
    return crc
end

local function word(number)
    return string.char(math.floor(number / 256), number % 256)
end

-- Eight bytes of ones and the IP header, with what changes on the way, and what ends of UDP sockets cannot know, as ones.
local function outside(source, destination, bytes)
    local ones = string.rep("\xff", 8)
    if #source == 4 then
        return ones .. "\x45\xff" .. word(20 + bytes) .. "\xff\xff\x40\x00\xff\x11\xff\xff" .. source .. destination
    end
    return ones .. "\x6f\xff\xff\xff" .. word(bytes) .. "\x11\xff" .. source .. destination
end

-- Of the innermost header that has one of the fields, as bytes; nil: none has.
local function innermost(...)
    local last
    for _, field in ipairs({...}) do
        local all = {field()}
        local found = all[#all]
        if found and (not last or found.offset > last.offset) then
            last = found
        end
    end
    return last and last.range:bytes():raw() or nil
end

local function has_good_icrc(payload)
    local source = innermost(ADDRESSES[1].source, ADDRESSES[2].source)
    local destination = innermost(ADDRESSES[1].destination, ADDRESSES[2].destination)
    local crc = crc_add(0xffffffff, outside(source, destination, 8 + #payload))
    crc = crc_add(crc, innermost(udp_source) .. innermost(udp_destination) .. word(8 + #payload) .. "\xff\xff")
    crc = bit.bnot(crc_add(crc, payload:sub(1, 4) .. "\xff" .. payload:sub(6, -5)))
    local first, second, third, fourth = payload:byte(-4, -1)
    return crc % 2 ^ 32 == first + 256 * (second + 256 * (third + 256 * fourth))
end

-- What an ICMP error quotes may end before the ICRC.
local function check_icrc(node)
    local payload = innermost(udp_payload)
    local is_whole = innermost(udp_length) == word(8 + #payload)
    if is_whole and not has_good_icrc(payload) then
        node:add_proto_expert_info(icrc_bad)
    end
end

local udp_ports = DissectorTable.get("udp.port")
local roce = udp_ports:get_dissector(ROCE_PORT)

-- Returns the bytes that are the other dissector's. Where that finds a packet malformed it says so in the tree, and to
-- its caller by an error.
local function call(dissector, tvb, pinfo, tree)
    local is_whole, bytes = pcall(dissector.call, dissector, tvb, pinfo, tree)
    return is_whole and bytes or tvb:captured_len()
end

-- ---- the whole ------------------------------------------------------------------------------------------------------

function csa.dissector(tvb, pinfo, tree)
    local node = tree:add(csa, tvb())
    pinfo.cols.protocol = "CSA"
    if tvb:len() < HEADER_BYTES then
        node:add_proto_expert_info(bad)
        return tvb:len()
    end
    add_header(node, tvb)
    if csa.prefs.check_icrc then
        check_icrc(node)
    end
    local past = tvb:len() - bth_pad().value
    if not is_header_good(tvb, past) then
        node:add_proto_expert_info(bad)
        return tvb:len()
    end
    local lines = add_frames(node, tvb, past)
    node:append_text(string.format(", path %d, sequence %d", tvb(16, 1):uint(), bth_psn().value))
    pinfo.cols.info = string.format("path %d seq %d: %s", tvb(16, 1):uint(), bth_psn().value, table.concat(lines, ", "))
    return tvb:len()
end

-- What the outside of a packet for one of the engine's own QPNs looks like; InfiniBand's own packets have no UDP header.
local function is_for(index, key)
    local opcode, destination, qkey = bth_opcode(), bth_dest_qpn(), deth_qkey()
    return udp_payload() and opcode and destination and qkey and deth_src_qpn() and opcode.value == OPCODE and
           destination.value % 65536 == index and tostring(qkey.value) == tostring(key)
end

-- The connection manager says what others say to QPN 1, and by that Wireshark knows a MAD.
local function dissect_mad(tvb, pinfo, tree)
    if csa.prefs.check_icrc then
        check_icrc(tree:add(slots, tvb(), "For the connection manager of a slot"))
    end
    local payload = innermost(udp_payload)
    local to_qpn_1 = payload:sub(1, 5) .. "\0\0\1" .. payload:sub(9)
    call(roce, ByteArray.new(to_qpn_1, true):tvb("as if to QPN 1"), pinfo, tree)
end

-- Wireshark gives no packets here that the capture holds in part only.
csa:register_heuristic("infiniband.payload", function(tvb, pinfo, tree)
    local is_csa = is_for(QPN_INDEX, QKEY)
    if is_csa then
        csa.dissector(tvb, pinfo, tree)
    end
    local is_mad = roce and tvb:len() == MAD_BYTES and is_for(CM_QPN_INDEX, CM_QKEY)
    if is_mad then
        dissect_mad(tvb, pinfo, tree)
    end
    return is_csa or is_mad or false
end)

-- ---- ports of other slots -------------------------------------------------------------------------------------------

local others = {} -- what a port is for besides

-- What is for one of the engine's own QPNs: CSA, or the connection manager's.
local function is_ours(tvb)
    if tvb:captured_len() < 20 or tvb(0, 1):uint() ~= OPCODE then
        return false
    end
    local index, key = tvb(6, 2):uint(), tvb(12, 4):uint()
    return (index == QPN_INDEX and key == QKEY) or (index == CM_QPN_INDEX and key == CM_QKEY)
end

-- Other programs use these ports, too. What is for a slot names it in its destination QPN, and by little else is RoCE
-- known from what is not.
local function is_roce(tvb, port)
    return tvb:reported_len() >= 16 and tvb:captured_len() >= 12 and tvb:reported_len() % 4 == 0 and
           tvb(1, 1):uint() % 16 == 0 and tvb(5, 1):uint() == port - ROCE_PORT
end

function slots.dissector(tvb, pinfo, tree)
    local other = others[pinfo.match_uint]
    if is_ours(tvb) or (not other and is_roce(tvb, pinfo.dst_port)) then
        call(roce, tvb, pinfo, tree)
        return tvb:captured_len()
    end
    return other and call(other, tvb, pinfo, tree) or 0
end

if roce then
    for port = SLOT_PORT_FIRST, SLOT_PORT_LAST do
        others[port] = udp_ports:get_dissector(port)
        udp_ports:add(port, slots)
    end
end
