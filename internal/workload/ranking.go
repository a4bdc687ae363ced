package workload

import (
	"context"
	"fmt"

	"github.com/redquake/redquake/internal/resp"
	"github.com/redquake/redquake/internal/topology"
)

// Ranking is a leaderboard: one sorted set {prefix}ranking of members member:0 to member:{Members-1}, the higher score the better. A member's
// rank is 1 + the number of members with a better score, so that equal scores share a rank; ZREVRANK would not tell that.
//
//   - set: ZADD of a random score
//   - get: ZSCORE of a member, then ZCOUNT of the better scores
//   - find: ZSCOREs of FindCount members at once, then their ZCOUNTs at once
//   - findByOrder: ZREVRANGE WITHSCORES of FindCount members from a random place on, then ZCOUNT of what is better than the first of them
//
// Members are drawn by the keyspace's distribution. All members are there before the start, with random scores.
type Ranking struct {
	Members     int64          `json:"members"`     // 1 to 1e9
	ScoreSpread int64          `json:"scoreSpread"` // scores are whole numbers in [0, ScoreSpread), drawn uniformly; 1 to 2^53
	FindCount   int            `json:"findCount"`   // 1 to 1000, not above Members
	Weights     RankingWeights `json:"weights"`     // an operation of weight 0 is left out
}

// RankingWeights are the operations' weights.
type RankingWeights struct {
	Set         int `json:"set,omitempty"`
	Get         int `json:"get,omitempty"`
	Find        int `json:"find,omitempty"`
	FindByOrder int `json:"findByOrder,omitempty"`
}

// fillMembers is how many members one ZADD of the filling writes.
const fillMembers = 100

const memberPrefix = "member:"

func (k *Ranking) check(*Spec) string {
	w := k.Weights
	switch {
	case k.Members < 1 || k.Members > 1_000_000_000:
		return fmt.Sprintf("members: is %d, must be 1 to 1000000000", k.Members)
	case k.ScoreSpread < 1 || k.ScoreSpread > 1<<53:
		return fmt.Sprintf("scoreSpread: is %d, must be 1 to 2^53, up to which Redis keeps whole scores exactly", k.ScoreSpread)
	case k.FindCount < 1 || k.FindCount > 1000 || int64(k.FindCount) > k.Members:
		return fmt.Sprintf("findCount: is %d, must be 1 to 1000 and not above members", k.FindCount)
	case min(w.Set, w.Get, w.Find, w.FindByOrder) < 0 || max(w.Set, w.Get, w.Find, w.FindByOrder) > maxWeight:
		return fmt.Sprintf("weights: must be 0 to %d", maxWeight)
	case w == RankingWeights{}:
		return "weights: all are 0"
	}
	return ""
}

// The kinds of operation, in the order of the records.
const (
	rankingSet = iota
	rankingGet
	rankingFind
	rankingFindByOrder
)

// kinds are the kinds of operation that have a weight.
func (k *Ranking) kinds() ([]int, []Operation) {
	all := []Operation{
		rankingSet:         {Name: "set", Weight: k.Weights.Set},
		rankingGet:         {Name: "get", Weight: k.Weights.Get, ReadOnly: true},
		rankingFind:        {Name: "find", Weight: k.Weights.Find, ReadOnly: true},
		rankingFindByOrder: {Name: "findByOrder", Weight: k.Weights.FindByOrder, ReadOnly: true},
	}
	var kinds []int
	var operations []Operation
	for kind, o := range all {
		if o.Weight > 0 {
			kinds, operations = append(kinds, kind), append(operations, o)
		}
	}
	return kinds, operations
}

func (k *Ranking) mix() mix {
	_, operations := k.kinds()
	return newMix(operations)
}

type ranking struct {
	mix
	spec    *Ranking
	kinds   []int // of each operation
	key     string
	members Keyspace
	// The commands as far as they never change.
	zadd, zscore, zrevrange, zcount []byte
}

func newRanking(s *Spec) *ranking {
	r := &ranking{mix: s.Ranking.mix(), spec: s.Ranking, key: s.Keyspace.Prefix + "ranking", members: s.Keyspace}
	r.members.Keys = s.Ranking.Members
	r.kinds, _ = s.Ranking.kinds()
	r.zadd = head(4, "ZADD", r.key)
	r.zscore = head(3, "ZSCORE", r.key)
	r.zrevrange = head(5, "ZREVRANGE", r.key)
	r.zcount = head(4, "ZCOUNT", r.key)
	return r
}

// Fill adds this pod's part of the members.
func (r *ranking) Fill(ctx context.Context, f *Filler) error {
	slot := topology.SlotOf([]byte(r.key))
	return f.Write(ctx, Data{What: "members", Items: r.spec.Members, Command: "ZADD", Encoder: func(from int64) func([]byte, int64, int64) ([]byte, int64, uint16) {
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
	}})
}

// Source makes one event loop's requests.
func (r *ranking) Source(number, of int64, slots bool) Source {
	chance := newChance(&r.mix, number)
	s := &rankingSource{chance: chance, ranking: r, draws: newKeyDraw(r.members, number, of, chance), slot: NoSlot}
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

// Draw keeps the operation's first member, or place, in state[0]. The key is always the same.
func (s *rankingSource) Draw(op int, r *Request) {
	r.Op, r.Key, r.Slot, r.step = op, 0, s.slot, 0
	if s.ranking.kinds[op] == rankingFindByOrder {
		r.state[0] = s.below(s.ranking.spec.Members - int64(s.ranking.spec.FindCount) + 1)
		return
	}
	r.state[0] = s.draws.draw()
}

// Follows says which operations read replies: all but set.
func (s *rankingSource) Follows(op int) bool { return s.ranking.kinds[op] != rankingSet }

// Append encodes the first round trip: the scores.
func (s *rankingSource) Append(dst []byte, r *Request) ([]byte, int) {
	k, count := s.ranking, s.ranking.spec.FindCount
	r.step = 0
	switch k.kinds[r.Op] {
	case rankingSet:
		dst = append(dst, k.zadd...)
		dst = appendNumber(dst, "", s.below(k.spec.ScoreSpread))
		return appendNumber(dst, memberPrefix, r.state[0]), 1
	case rankingGet:
		return s.appendScore(dst, r.state[0]), 1
	case rankingFind:
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

// Next asks for the ranks of the scores that came. A member that is not there has none.
func (s *rankingSource) Next(dst []byte, r *Request, replies []resp.Value, _ []uint64) ([]byte, int) {
	if r.step > 0 || len(replies) == 0 {
		return dst, 0
	}
	r.step = 1
	if s.ranking.kinds[r.Op] == rankingFindByOrder {
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

// appendCount counts the members with a score better than this one.
func (s *rankingSource) appendCount(dst []byte, score string) []byte {
	dst = append(dst, s.ranking.zcount...)
	dst = appendText(dst, "(", score)
	return appendText(dst, "+inf", "")
}

// firstScore is the first member's score in a reply WITHSCORES: member, score, ... in RESP2, pairs of them in RESP3.
func firstScore(v resp.Value) (string, bool) {
	if len(v.Items) > 0 && len(v.Items[0].Items) == 2 {
		return v.Items[0].Items[1].Text, true
	}
	if len(v.Items) >= 2 {
		return v.Items[1].Text, true
	}
	return "", false
}
