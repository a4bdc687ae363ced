package oracle

import (
	"testing"
	"time"
)

// kept are histories of which the analysis once said something false without a doubt.
var kept = map[string]History{
	"a slow load that dialled before the network held its requests": {
		Rate: 15, Pods: 4, Shards: 1, Reads: 1, Writes: 1, Probe: 20, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 19800 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Refuse, At: 6100760 * time.Microsecond, For: 74904 * time.Microsecond, Only: All},
			{Way: Hold, At: 6441322 * time.Microsecond, For: 778286 * time.Microsecond, Only: All},
		},
	},
	"a stall while connections were refused": {
		Rate: 4401, Pods: 1, Shards: 1, Reads: 1, Writes: 1, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 4800 * time.Millisecond, Hold: 1 * time.Second,
		Events: []Event{
			{Way: Hold, At: -2130742 * time.Microsecond, For: 12318 * time.Microsecond, Only: All},
			{Way: Hold, At: 0, For: 961018 * time.Microsecond, Only: All},
			{Way: Stall, At: 206509 * time.Microsecond, For: 268476 * time.Microsecond, Only: All},
			{Way: Refuse, At: 1124243 * time.Microsecond, For: 95904 * time.Microsecond, Only: All},
			{Way: Stall, At: 1206509 * time.Microsecond, For: 268476 * time.Microsecond, Only: All},
			{Way: Stall, At: 2206509 * time.Microsecond, For: 268476 * time.Microsecond, Only: All},
			{Way: Stall, At: 3206509 * time.Microsecond, For: 268476 * time.Microsecond, Only: All},
		},
	},
	"new connections to a server that is read-only": {
		Rate: 562, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Probe: 20, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 4600 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: ReadOnly, At: 0, For: 37524 * time.Microsecond, Only: All},
			{Way: Starve, At: 0, For: 4600 * time.Millisecond, Only: All, Share: 0.3},
		},
	},
	"three requests a second and a stall": {
		Rate: 3, Pods: 2, Shards: 1, Reads: 0, Writes: 1, Probe: 50, Timeout: 3 * time.Second, Baseline: 37 * time.Second, Observed: 15100 * time.Millisecond, Hold: 10 * time.Second, SeenAt: 2481613 * time.Microsecond,
		Events: []Event{
			{Way: Stop, At: 282178 * time.Microsecond, For: 201540 * time.Microsecond, Only: All},
			{Way: Stop, At: 2031284 * time.Microsecond, For: 151964 * time.Microsecond, Only: All},
			{Way: ReadOnly, At: 2481613 * time.Microsecond, For: 96261 * time.Microsecond, Only: All},
			{Way: Stall, At: 3912626 * time.Microsecond, For: 763393 * time.Microsecond, Only: All},
		},
	},
	"a probe of one of two load pods": {
		Rate: 1151, Pods: 2, Shards: 1, Reads: 4, Writes: 1, Probe: 10, Timeout: 3 * time.Second, Baseline: 4 * time.Second, Observed: 6100 * time.Millisecond, Hold: 2 * time.Second, SeenAt: 1321729 * time.Microsecond,
		Events: []Event{
			{Way: ReadOnly, At: 1321729 * time.Microsecond, For: 191109 * time.Microsecond, Only: All},
		},
	},
	"a shard that nobody asked in the end": {
		Rate: 3, Pods: 4, Shards: 3, Reads: 1, Writes: 1, Probe: 10, Timeout: 1 * time.Second, Baseline: 37 * time.Second, Observed: 13900 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Hold, At: -20023142 * time.Microsecond, For: 81049 * time.Microsecond, Only: All},
			{Way: Stop, At: -12595579 * time.Microsecond, For: 90877 * time.Microsecond, Only: All},
			{Way: Refuse, At: 0, For: 1311910 * time.Microsecond, Only: 0},
		},
	},
	"users of a closed loop in a stall": {
		Users: 2, Cost: 2 * time.Millisecond, Pods: 1, Shards: 1, Reads: 1, Writes: 1, Probe: 20, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 9200 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: 147891 * time.Microsecond, For: 24090 * time.Microsecond, Only: All},
			{Way: Lower, At: 205063 * time.Microsecond, For: 579479 * time.Microsecond, Only: All, Share: 0.5},
			{Way: Lower, At: 864043 * time.Microsecond, For: 1238369 * time.Microsecond, Only: All, Share: 0.2},
			{Way: Lower, At: 2142249 * time.Microsecond, For: 2492319 * time.Microsecond, Only: All, Share: 0.05},
			{Way: Stall, At: 5604257 * time.Microsecond, For: 1474121 * time.Microsecond, Only: All},
		},
	},
	"a stall soon after errors": {
		Users: 2, Cost: 4 * time.Millisecond, Pods: 1, Shards: 1, Reads: 4, Writes: 1, Probe: 10, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 5500 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: -1902693 * time.Microsecond, For: 28018 * time.Microsecond, Only: All},
			{Way: Hold, At: 21283 * time.Microsecond, For: 732104 * time.Microsecond, Only: All},
			{Way: FailReads, At: 834417 * time.Microsecond, For: 157764 * time.Microsecond, Only: All},
			{Way: Stall, At: 1340245 * time.Microsecond, For: 117963 * time.Microsecond, Only: All},
		},
	},
	"a level so low that each request is a gap": {
		Users: 1, Cost: 2 * time.Millisecond, Pods: 1, Shards: 1, Reads: 1, Writes: 1, Probe: 20, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 5700 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Lower, At: 0, For: 1188896 * time.Microsecond, Only: All, Share: 0.9},
		},
	},
	"an effect that is seen later than a recovery had to hold": {
		Rate: 14082, Pods: 2, Shards: 2, Reads: 1, Writes: 1, Probe: 20, Timeout: 3 * time.Second, Baseline: 4 * time.Second, Observed: 4700 * time.Millisecond, Hold: 1 * time.Second, SeenAt: 1003980 * time.Microsecond,
		Events: []Event{
			{Way: Stop, At: 1003980 * time.Microsecond, For: 154939 * time.Microsecond, Only: 1},
		},
	},
	"a reply to the probe that arrived while the process did not run": {
		Rate: 159, Pods: 4, Shards: 2, Reads: 1, Writes: 1, Probe: 20, Timeout: 300 * time.Millisecond, Baseline: 20 * time.Second, Observed: 16900 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Stop, At: 411039 * time.Microsecond, For: 430961 * time.Microsecond, Only: 1},
			{Way: Stall, At: 1313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stop, At: 1542101 * time.Microsecond, For: 296797 * time.Microsecond, Only: 1},
			{Way: Stall, At: 2313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 3313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stop, At: 3769463 * time.Microsecond, For: 612763 * time.Microsecond, Only: 1},
			{Way: Stall, At: 4313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 5313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 6313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 7313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 8313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 9313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 10313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 11313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 12313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 13313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 14313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
			{Way: Stall, At: 15313581 * time.Microsecond, For: 293976 * time.Microsecond, Only: 0},
		},
	},
	"shards that are down until the end": {
		Users: 2, Cost: 1 * time.Millisecond, Pods: 1, Shards: 3, Reads: 0, Writes: 1, Timeout: 300 * time.Millisecond, Baseline: 4 * time.Second, Observed: 5800 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Hold, At: -1811621 * time.Microsecond, For: 86622 * time.Microsecond, Only: All},
			{Way: Hold, At: 1268030 * time.Microsecond, For: 4531970 * time.Microsecond, Only: All},
		},
	},
	"one of four load pods did not run": {
		Rate: 108, Pods: 4, Shards: 1, Reads: 4, Writes: 1, Probe: 20, Ledger: 0.02, Timeout: 300 * time.Millisecond, Baseline: 20 * time.Second, Observed: 21 * time.Second, Hold: 10 * time.Second, Harmless: 8049494 * time.Microsecond,
		Events: []Event{
			{Way: Stop, At: -13376590 * time.Microsecond, For: 31307 * time.Microsecond, Only: All},
			{Way: Hold, At: -6285690 * time.Microsecond, For: 43865 * time.Microsecond, Only: All},
			{Way: Stall, At: 1839046 * time.Microsecond, For: 1189073 * time.Microsecond, Only: 0},
		},
	},
	"writes to one of two shards, and a stall": {
		Users: 4, Cost: 1 * time.Millisecond, Pods: 1, Shards: 2, Reads: 4, Writes: 1, Probe: 10, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 4600 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: ReadOnly, At: 0, For: 43239 * time.Microsecond, Only: 1},
			{Way: Stall, At: 19416 * time.Microsecond, For: 61303 * time.Microsecond, Only: All},
		},
	},
	"users who hang in reads until the end, and ask no write": {
		Users: 2, Cost: 1 * time.Millisecond, Pods: 1, Shards: 1, Reads: 4, Writes: 1, Probe: 20, Timeout: 300 * time.Millisecond, Baseline: 4 * time.Second, Observed: 4800 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: 199267 * time.Microsecond, For: 4600733 * time.Microsecond, Only: All},
		},
	},
	"requests on connections that were made long before the outage": {
		Rate: 10, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 15300 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Refuse, At: 1 * time.Second, For: 10 * time.Millisecond, Only: All},
			{Way: Stop, At: 2 * time.Second, For: 700 * time.Millisecond, Only: All},
		},
	},
	"an outage of reads that is none of the load's": {
		Rate: 10, Pods: 1, Shards: 1, Reads: 1, Writes: 1, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 20600 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: FailReads, At: 0, For: 1500 * time.Millisecond, Only: All},
			{Way: Stop, At: 7 * time.Second, For: 1 * time.Second, Only: All},
		},
	},
	"writes so rare that the record ends before a recovery is certain": {
		Rate: 4, Pods: 2, Shards: 1, Reads: 4, Writes: 1, Timeout: 1 * time.Second, Baseline: 28 * time.Second, Observed: 21900 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Refuse, At: 2500 * time.Millisecond, For: 400 * time.Millisecond, Only: All},
			{Way: Refuse, At: 8700 * time.Millisecond, For: 680 * time.Millisecond, Only: All},
		},
	},
	"reads of one shard that fail longer than its gap": {
		Rate: 265, Pods: 4, Shards: 3, Reads: 4, Writes: 1, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 12900 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: FailReads, At: 18904 * time.Microsecond, For: 300 * time.Millisecond, Only: 0},
		},
	},
	"an outage that goes on behind replies that were held back": {
		Rate: 27, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 12700 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Stop, At: 0, For: 50 * time.Millisecond, Only: All},
			{Way: Hold, At: 20 * time.Millisecond, For: 90 * time.Millisecond, Only: All},
			{Way: Stop, At: 70 * time.Millisecond, For: 70 * time.Millisecond, Only: All},
		},
	},
	"the sum of outages behind replies that were held back": {
		Rate: 100, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 6600 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: 1050 * time.Millisecond, For: 240 * time.Millisecond, Only: All},
			{Way: Hold, At: 1270 * time.Millisecond, For: 780 * time.Millisecond, Only: All},
			{Way: Stop, At: 1840 * time.Millisecond, For: 220 * time.Millisecond, Only: All},
		},
	},
	"a queue of users after several stops": {
		Users: 24, Cost: 4 * time.Millisecond, Pods: 3, Shards: 1, Reads: 0, Writes: 1, Probe: 20, Timeout: 300 * time.Millisecond, Baseline: 4 * time.Second, Observed: 6300 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: 1297461 * time.Microsecond, For: 69363 * time.Microsecond, Only: All},
			{Way: Stop, At: 1394840 * time.Microsecond, For: 150159 * time.Microsecond, Only: All},
			{Way: Stop, At: 1580240 * time.Microsecond, For: 204891 * time.Microsecond, Only: All},
		},
	},
	"a request that a stall of one of four load pods made late": {
		Rate: 7, Pods: 4, Shards: 1, Reads: 1, Writes: 1, Probe: 20, Timeout: 300 * time.Millisecond, Baseline: 20 * time.Second, Observed: 12600 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Stall, At: 7244315 * time.Microsecond, For: 717490 * time.Microsecond, Only: 0},
		},
	},
	"gaps of reads while the level is lower": {
		Users: 3, Cost: 4 * time.Millisecond, Pods: 3, Shards: 1, Reads: 1, Writes: 1, Timeout: 3 * time.Second, Baseline: 4 * time.Second, Observed: 5300 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Lower, At: 404679 * time.Microsecond, For: 342150 * time.Microsecond, Only: All, Share: 0.5},
		},
	},
	"a stop behind a refusal, at two requests a second": {
		Rate: 2, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Timeout: 3 * time.Second, Baseline: 55 * time.Second, Observed: 14600 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: Refuse, At: 270 * time.Millisecond, For: 10 * time.Millisecond, Only: All},
			{Way: Stop, At: 500 * time.Millisecond, For: 1500 * time.Millisecond, Only: All},
		},
	},
	"slow requests of one user": {
		Users: 1, Cost: 4 * time.Millisecond, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Probe: 20, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 6100 * time.Millisecond, Hold: 2 * time.Second, SeenAt: 1372734 * time.Microsecond,
		Events: []Event{
			{Way: Lower, At: 1 * time.Second, For: 500 * time.Millisecond, Only: All, Share: 0.5},
		},
	},
	"reads of a shard that fail for a little longer than the windows tell": {
		Rate: 15352, Pods: 1, Shards: 2, Reads: 1, Writes: 1, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 4300 * time.Millisecond, Hold: 1 * time.Second,
		Events: []Event{
			{Way: FailReads, At: 674161 * time.Microsecond, For: 29053 * time.Microsecond, Only: 1},
		},
	},
	"a probe behind a queue that is a little slower": {
		Users: 24, Cost: 2 * time.Millisecond, Pods: 3, Shards: 1, Reads: 0, Writes: 1, Probe: 20, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 5100 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Lower, At: 100 * time.Millisecond, For: 400 * time.Millisecond, Only: All, Share: 0.05},
		},
	},
	"a shard whose reads fail for longer than its gap lasts": {
		Rate: 86, Pods: 1, Shards: 3, Reads: 4, Writes: 1, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 23700 * time.Millisecond, Hold: 10 * time.Second, SeenAt: 5716955 * time.Microsecond,
		Events: []Event{
			{Way: FailReads, At: 10 * time.Second, For: 1140 * time.Millisecond, Only: 1},
		},
	},
	"a write that waited before the server was read-only": {
		Users: 8, Cost: 2 * time.Millisecond, Pods: 2, Shards: 1, Reads: 4, Writes: 1, Probe: 10, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 6400 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Lower, At: 0, For: 868050 * time.Microsecond, Only: All, Share: 0.9},
			{Way: ReadOnly, At: 724930 * time.Microsecond, For: 617741 * time.Microsecond, Only: All},
		},
	},
	"few writes in an outage of writes that is longer than the load's": {
		Rate: 43, Pods: 1, Shards: 1, Reads: 4, Writes: 1, Timeout: 1 * time.Second, Baseline: 20 * time.Second, Observed: 12800 * time.Millisecond, Hold: 10 * time.Second,
		Events: []Event{
			{Way: ReadOnly, At: 0, For: 200 * time.Millisecond, Only: All},
			{Way: Stop, At: 100 * time.Millisecond, For: 100 * time.Millisecond, Only: All},
		},
	},
	"a user who waits for a read until the end": {
		Users: 1, Cost: 2 * time.Millisecond, Pods: 1, Shards: 3, Reads: 1, Writes: 1, Timeout: 3 * time.Second, Baseline: 4 * time.Second, Observed: 5200 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: -2 * time.Second, For: 10 * time.Millisecond, Only: All},
			{Way: Stop, At: 0, For: 5200 * time.Millisecond, Only: All},
		},
	},
	"a reply that was held back, just before the server continues": {
		Users: 1, Cost: 4 * time.Millisecond, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 5100 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Hold, At: 480 * time.Millisecond, For: 63553 * time.Microsecond, Only: All},
			{Way: Stop, At: 523371 * time.Microsecond, For: 22691 * time.Microsecond, Only: All},
		},
	},
	"a load pod that sends at once what was due in a stall": {
		Users: 6, Cost: 4 * time.Millisecond, Pods: 3, Shards: 3, Reads: 1, Writes: 1, Probe: 20, Timeout: 300 * time.Millisecond, Baseline: 4 * time.Second, Observed: 4600 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stall, At: 737531 * time.Microsecond, For: 325835 * time.Microsecond, Only: 0},
		},
	},
	"a stall that is over just after reads are served again": {
		Rate: 1152, Pods: 1, Shards: 1, Reads: 1, Writes: 1, Probe: 50, Timeout: 3 * time.Second, Baseline: 4 * time.Second, Observed: 5900 * time.Millisecond, Hold: 2 * time.Second,
		Events: []Event{
			{Way: Stop, At: -2617871 * time.Microsecond, For: 62295 * time.Microsecond, Only: All},
			{Way: FailReads, At: 1166692 * time.Microsecond, For: 174984 * time.Microsecond, Only: All},
			{Way: Stop, At: 1254184 * time.Microsecond, For: 25299 * time.Microsecond, Only: All},
			{Way: Stall, At: 1277493 * time.Microsecond, For: 69298 * time.Microsecond, Only: All},
		},
	},
	"a shard that hangs for so long that a load generator's queue is full": {
		Rate: 19045, Pods: 1, Shards: 3, Reads: 0, Writes: 1, Timeout: 3 * time.Second, Baseline: 4 * time.Second, Observed: 5200 * time.Millisecond, Hold: 1 * time.Second,
		Events: []Event{
			{Way: Stop, At: 924638 * time.Microsecond, For: 4275362 * time.Microsecond, Only: 2},
		},
	},
	"a stop while the level is lower": {
		Users: 2, Cost: 1 * time.Millisecond, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Probe: 10, Timeout: 1 * time.Second, Baseline: 4 * time.Second, Observed: 5800 * time.Millisecond, Hold: 2 * time.Second, SeenAt: 437977 * time.Microsecond,
		Events: []Event{
			{Way: Lower, At: 0, For: 509373 * time.Microsecond, Only: All, Share: 0.9},
			{Way: Stop, At: 437977 * time.Microsecond, For: 598674 * time.Microsecond, Only: All},
			{Way: Stop, At: 1141132 * time.Microsecond, For: 102716 * time.Microsecond, Only: All},
		},
	},
}

// TestKeptHistories: figures that were false are true now, or doubted.
func TestKeptHistories(t *testing.T) {
	for name, h := range kept {
		t.Run(name, func(t *testing.T) {
			for _, f := range check(t, &h).False() {
				t.Errorf("%s\n%s", f, &h)
			}
		})
	}
}
