package workload

import (
	"context"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// fillMembers is how many members one ZADD of Fill writes.
const fillMembers = 100

const memberPrefix = "member:"

type ranking struct {
	mix
	spec    *plan.Ranking
	kinds   []int // of each operation
	key     string
	members plan.Keyspace
	// The constant beginnings of the commands.
	zadd, zscore, zrevrange, zcount []byte
}

func newRanking(s *plan.Workload) *ranking {
	r := &ranking{
		mix:     mixOf(s),
		spec:    s.Ranking,
		key:     s.Keyspace.Prefix + "ranking",
		members: s.Keyspace,
	}
	r.members.Keys = s.Ranking.Members
	r.kinds, _ = s.Ranking.Kinds()
	r.zadd = head(4, "ZADD", r.key)
	r.zscore = head(3, "ZSCORE", r.key)
	r.zrevrange = head(5, "ZREVRANGE", r.key)
	r.zcount = head(4, "ZCOUNT", r.key)
	return r
}

// Fill adds this pod's part of the members.
func (r *ranking) Fill(ctx context.Context, f *Filler) error {
	slot := topology.SlotOf([]byte(r.key))
	return f.Write(ctx, Data{
		What:    "members",
		Items:   r.spec.Members,
		Command: "ZADD",
		Encoder: func(from int64) func([]byte, int64, int64) ([]byte, int64, uint16) {
			chance := newChance(nil, from)
			full := head(2+2*fillMembers, "ZADD", r.key)
			return func(dst []byte, item, end int64) ([]byte, int64, uint16) {
				n := min(end-item, fillMembers)
				if n == fillMembers {
					dst = append(dst, full...)
				} else {
					dst = append(dst, head(int(2+2*n), "ZADD", r.key)...)
				}
				for i := range n {
					dst = appendNumber(dst, "", chance.below(r.spec.ScoreSpread))
					dst = appendNumber(dst, memberPrefix, item+i)
				}
				return dst, n, slot
			}
		},
	})
}

// Source returns the source of one event loop's requests.
func (r *ranking) Source(number, of int64, slots bool) Source {
	chance := newChance(&r.mix, number)
	s := &rankingSource{
		chance:  chance,
		ranking: r,
		draws:   newKeyDraw(r.members, number, of, chance),
		slot:    NoSlot,
	}
	if slots {
		s.slot = topology.SlotOf([]byte(r.key))
	}
	return s
}

type rankingSource struct {
	chance
	ranking *ranking
	draws   *keyDraw
	slot    uint16
}

// Draw keeps the operation's first member, or rank, in state[0]. The key is always the same.
func (s *rankingSource) Draw(op int, r *Request) {
	r.Op, r.Key, r.Slot, r.step = op, 0, s.slot, 0
	if s.ranking.kinds[op] == plan.RankingFindByOrder {
		r.state[0] = s.below(s.ranking.spec.Members - int64(s.ranking.spec.FindCount) + 1)
		return
	}
	r.state[0] = s.draws.draw()
}

// Follows reports which operations read replies: all except set.
func (s *rankingSource) Follows(op int) bool {
	return s.ranking.kinds[op] != plan.RankingSet
}

// Append encodes the first round trip, which reads the scores.
func (s *rankingSource) Append(dst []byte, r *Request) ([]byte, int) {
	k, count := s.ranking, s.ranking.spec.FindCount
	r.step = 0
	switch k.kinds[r.Op] {
	case plan.RankingSet:
		dst = append(dst, k.zadd...)
		dst = appendNumber(dst, "", s.below(k.spec.ScoreSpread))
		return appendNumber(dst, memberPrefix, r.state[0]), 1
	case plan.RankingGet:
		return s.appendScore(dst, r.state[0]), 1
	case plan.RankingFind:
		dst = s.appendScore(dst, r.state[0])
		for range count - 1 {
			dst = s.appendScore(dst, s.draws.draw())
		}
		return dst, count
	}
	dst = append(dst, k.zrevrange...)
	dst = appendNumber(dst, "", r.state[0])
	dst = appendNumber(dst, "", r.state[0]+int64(count)-1)
	return appendText(dst, "WITHSCORES", ""), 1
}

func (s *rankingSource) appendScore(dst []byte, member int64) []byte {
	dst = append(dst, s.ranking.zscore...)
	return appendNumber(dst, memberPrefix, member)
}

// Next encodes the second round trip, which counts the better scores. A member that does not exist
// has no rank.
func (s *rankingSource) Next(
	dst []byte, r *Request, replies []resp.Value, _ []uint64,
) ([]byte, int) {
	if r.step > 0 || len(replies) == 0 {
		return dst, 0
	}
	r.step = 1
	if s.ranking.kinds[r.Op] == plan.RankingFindByOrder {
		score, found := firstScore(replies[0])
		if !found {
			return dst, 0
		}
		return s.appendCount(dst, score), 1
	}
	n := 0
	for _, v := range replies {
		if v.Type != '_' {
			dst = s.appendCount(dst, v.Text)
			n++
		}
	}
	return dst, n
}

// appendCount appends a command that counts the members with a higher score.
func (s *rankingSource) appendCount(dst []byte, score string) []byte {
	dst = append(dst, s.ranking.zcount...)
	dst = appendText(dst, "(", score)
	return appendText(dst, "+inf", "")
}

// firstScore returns the first member's score in a reply WITHSCORES: member, score, ... in RESP2,
// pairs in RESP3.
func firstScore(v resp.Value) (string, bool) {
	if len(v.Items) > 0 && len(v.Items[0].Items) == 2 {
		return v.Items[0].Items[1].Text, true
	}
	if len(v.Items) >= 2 {
		return v.Items[1].Text, true
	}
	return "", false
}
