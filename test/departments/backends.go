package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver mysql, also for MariaDB
	"github.com/redis/go-redis/v9"
)

// redisRows has a hash for each set, with a field for each row.
type redisRows struct{ client *redis.Client }

func hashOf(size int) string {
	return "departments:" + strconv.Itoa(size)
}

func (r *redisRows) seed(ctx context.Context, size int) error {
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for id := range size {
			if err := p.HSetNX(ctx, hashOf(size), strconv.Itoa(id), encoded(departmentOf(id))).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (r *redisRows) list(ctx context.Context, size int) ([]byte, error) {
	rows, err := r.client.HVals(ctx, hashOf(size)).Result()
	if err != nil {
		return nil, err
	}
	return []byte("[" + strings.Join(rows, ",") + "]"), nil
}

func (r *redisRows) put(ctx context.Context, size int, d department) error {
	return r.client.HSet(ctx, hashOf(size), strconv.Itoa(d.ID), encoded(d)).Err()
}

func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // rows are numbers and texts
	}
	return text
}

// mariadbRows has one table for all sets.
type mariadbRows struct{ db *sql.DB }

func openMariaDB(dsn string) (*mariadbRows, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return &mariadbRows{db}, nil
}

func (m *mariadbRows) seed(ctx context.Context, size int) error {
	const table = `CREATE TABLE IF NOT EXISTS departments (size INT, id INT, name VARCHAR(100) NOT NULL, city ` +
		`VARCHAR(100) NOT NULL, PRIMARY KEY (size, id))`
	if _, err := m.db.ExecContext(ctx, table); err != nil {
		return err
	}
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after the commit
	for id := range size {
		d := departmentOf(id)
		if _, err := tx.ExecContext(ctx, `INSERT IGNORE INTO departments VALUES (?, ?, ?, ?)`, size, d.ID, d.Name,
			d.City); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (m *mariadbRows) list(ctx context.Context, size int) ([]byte, error) {
	found, err := m.db.QueryContext(ctx, `SELECT id, name, city FROM departments WHERE size = ?`, size)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	rows := make([]department, 0, size)
	for found.Next() {
		var d department
		if err := found.Scan(&d.ID, &d.Name, &d.City); err != nil {
			return nil, err
		}
		rows = append(rows, d)
	}
	return encoded(rows), found.Err()
}

func (m *mariadbRows) put(ctx context.Context, size int, d department) error {
	_, err := m.db.ExecContext(ctx, `REPLACE INTO departments VALUES (?, ?, ?, ?)`, size, d.ID, d.Name, d.City)
	return err
}

// cachedRows is MariaDB behind a cache: a set is read from the database once a second.
type cachedRows struct {
	*mariadbRows
	cache *redis.Client
}

func (c *cachedRows) list(ctx context.Context, size int) ([]byte, error) {
	key := "cached:" + hashOf(size)
	rows, err := c.cache.Get(ctx, key).Bytes()
	if !errors.Is(err, redis.Nil) {
		return rows, err
	}
	if rows, err = c.mariadbRows.list(ctx, size); err != nil {
		return nil, err
	}
	return rows, c.cache.Set(ctx, key, rows, time.Second).Err()
}
